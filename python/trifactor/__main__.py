"""python -m trifactor info, python -m trifactor bench."""

import argparse
import json
import sys

from . import __version__, info


def _bytes(count):
    return f"{count / 2**30:.1f} GiB"


def print_info(as_json):
    found = info()
    if as_json:
        print(json.dumps(found))
        return
    print(f"trifactor {found['version']}")
    for device in found["devices"]:
        name = "host" if device["number"] < 0 else f"cuda:{device['number']}"
        cores = "threads" if device["number"] < 0 else "multiprocessors"
        print(f"{name:8} {device['name']}, {device['architecture']}, {device['cores']} {cores}, "
              f"{_bytes(device['memory_bytes'])}, {_bytes(device['free_bytes'])} free")
    if found["why_no_cuda"]:
        print(f"cuda     none: {found['why_no_cuda']}")
    print(f"blas     {found['blas']}")
    print(f"tuning   {found['tuning_rows']} rows")
    for name in ("numpy", "scipy", "torch", "cupy", "jax"):
        try:
            module = __import__(name)
        except ImportError:
            print(f"{name:8} not installed")
        else:
            print(f"{name:8} {module.__version__}")


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m trifactor", description="Cholesky and LU, dense and sparse.")
    parser.add_argument("--version", action="version", version=f"trifactor {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    about = commands.add_parser("info", help="what the library found on this machine")
    about.add_argument("--json", action="store_true", help="one JSON object")
    from . import bench
    bench.add_arguments(commands.add_parser("bench", help="trifactor beside NumPy, SciPy, PyTorch and CuPy"))
    given = parser.parse_args(arguments)
    try:
        if given.command == "info":
            print_info(given.json)
        else:
            bench.run(given)
    except (ValueError, RuntimeError) as e:
        print(f"error: {e}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
