"""``restrict_environment``: let a process see no environment variables but those it needs."""

import os
from collections.abc import Collection
from fnmatch import fnmatchcase

NAMES = {
    # users, folders and texts
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LANGUAGE", "TZ", "TMPDIR"),
    *("TEMP", "TMP", "HOSTNAME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
    "XDG_RUNTIME_DIR",
    # languages and their packages
    *("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "JAVA_HOME", "R_HOME", "R_LIBS"),
    *("R_LIBS_USER", "R_LIBS_SITE", "JULIA_DEPOT_PATH", "JULIA_LOAD_PATH", "JULIA_PROJECT"),
    *("JULIA_NUM_THREADS", "LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_LIBRARY_PATH"),
    *("DYLD_FALLBACK_LIBRARY_PATH", "MPLBACKEND"),
    # solvers and devices; secrets among their variables, such as GRB_WLSSECRET, are left out
    *("GUROBI_HOME", "XPRESS", "XPRESSDIR", "XPAUTH_PATH", "COPT_HOME", "COPT_LICENSE_DIR"),
    *("SCIPOPTDIR", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"),
    # Windows
    *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA"),
    *("LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "NUMBER_OF_PROCESSORS"),
    "PROCESSOR_ARCHITECTURE",
}
"""Environment variables that programs need to start and to find their parts."""

PREFIXES = (
    *("LC_", "PYTHON", "CPLEX_STUDIO_"),
    *("OMP_", "GOMP_", "KMP_", "OPENBLAS_", "GOTO_", "MKL_", "BLIS_", "VECLIB_", "NUMEXPR_"),
    *("RAYON_", "NUMBA_", "TBB_", "MALLOC_"),
    *("CUDA_", "HIP_", "ROCR_", "XLA_", "JAX_"),
)
"""How groups of such variables begin: languages, threads of numerical libraries, and devices."""

ENDINGS = ("_LICENSE_FILE",)
"""How such variables end: GRB_LICENSE_FILE, MOSEKLM_LICENSE_FILE, ILOG_LICENSE_FILE, ..."""


def restrict_environment(further: Collection[str] = ()) -> None:
    """Delete the environment variables of this process, except those that programs need.

    ``further`` are names or patterns of more variables to keep; ``"*"`` keeps all.

    >>> is_passed("PATH"), is_passed("OPENAI_API_KEY"), is_passed("OPENAI_API_KEY", ["OPENAI_*"])
    (True, False, True)
    """
    for name in list(os.environ):
        if not is_passed(name, further):
            del os.environ[name]


def is_passed(name: str, further: Collection[str] = ()) -> bool:
    """Return whether an environment variable is one that programs need, or one of ``further``."""
    is_needed = name in NAMES or name.startswith(PREFIXES) or name.endswith(ENDINGS)
    return is_needed or any(fnmatchcase(name, pattern) for pattern in further)
