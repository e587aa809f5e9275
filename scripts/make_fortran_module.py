#!/usr/bin/env python3
"""Writes examples/fortran/trifactor.f90, the C interface as a Fortran module, from the C headers; --check compares."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parent.parent
TARGET = ROOT / "examples/fortran/trifactor.f90"
WIDTH = 116

HEAD = """\
! trifactor for Fortran: every function of trifactor.h under its own name. Made from the C headers by
! scripts/make_fortran_module.py. Compile it with your program: modules of different compilers do not mix.
! Structs are ready to use as they are declared; options may be left out. Arrays in a queue's memory are passed as
! c_loc(array), handles are type(c_ptr). docs/c.md explains.
module trifactor
  use, intrinsic :: iso_c_binding
  implicit none
  public
"""
TAIL = """\
contains

  !> A text of trifactor, such as trifactor_last_message(), as a Fortran string.
  function trifactor_string(text) result(string)
    type(c_ptr), intent(in) :: text
    character(len=:), allocatable :: string
    character(kind=c_char), pointer :: letters(:)
    integer :: i, n
    string = ''
    if (.not. c_associated(text)) return
    call c_f_pointer(text, letters, [huge(n)])
    n = 0
    do while (letters(n + 1) /= c_null_char)
      n = n + 1
    end do
    string = repeat(' ', n)
    do i = 1, n
      string(i:i) = letters(i)
    end do
  end function

end module
"""

# C type: (Fortran type, bytes, what a component is at first)
BASE = {"int": ("integer(c_int)", 4, "0"), "int64_t": ("integer(c_int64_t)", 8, "0"),
        "size_t": ("integer(c_size_t)", 8, "0"), "double": ("real(c_double)", 8, "0")}
POINTER = ("type(c_ptr)", 8, "c_null_ptr")
FUNCTION_POINTER = ("type(c_funptr)", 8, "c_null_funptr")

# What an argument without a name in the header is called, by its type.
NAMES = {"trifactor_queue": "queue", "trifactor_plan": "plan", "trifactor_lu_plan": "plan",
         "trifactor_dense_cholesky": "factor", "trifactor_dense_lu": "factor", "trifactor_sparse_cholesky": "factor",
         "trifactor_sparse_cholesky_batch": "factors",
         "trifactor_sparse_lu": "factor", "trifactor_front": "front", "trifactor_level": "levels",
         "trifactor_width_bin": "widths", "trifactor_step": "steps", "trifactor_contender": "contenders",
         "trifactor_device_info": "info", "trifactor_plan_info": "info", "trifactor_sparse_memory": "memory",
         "trifactor_compressed_columns": "columns", "double": "number", "int64_t": "number"}
ARRAYS = ("trifactor_level", "trifactor_width_bin", "trifactor_step", "trifactor_contender", "trifactor_measurement")


def split(text):
    """At commas outside of parentheses."""
    return [part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip() not in ("", "void")]


def wrapped(line, indent):
    """A line of Fortran, continued where it is too long."""
    lines = [""]
    for word in re.split(r"(?<=, )", line):
        if len(lines[-1]) + len(word) > WIDTH:
            lines[-1] = lines[-1].rstrip() + " &"
            lines.append(indent)
        lines[-1] += word
    return "\n".join(lines)


class Header:
    def __init__(self, text):
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        text = re.sub(r"^#.*$", "", text, flags=re.M)
        self.words = re.findall(r"typedef int (\w+);", text)
        self.enums = re.findall(r"enum \{(.*?)\};", text, flags=re.S)
        self.structs = {name: body for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", text, flags=re.S)}
        self.handles = re.findall(r"typedef struct (\w+) \w+;", text)
        self.functions = [(result.strip(), name, " ".join(arguments.split())) for result, name, arguments in re.findall(
            r"^((?:const )?\w+\s*\**)\s*(trifactor_\w+)\(((?:[^()]|\([^()]*\))*)\);", text, flags=re.M)]

    def base(self, name):
        return BASE["int" if name in self.words else name]

    def components(self, body):
        """(name, (Fortran type, bytes, initial value), how many) of a struct."""
        for declaration in filter(None, (d.strip() for d in body.split(";"))):
            if match := re.search(r"\(\*(\w+)\)", declaration):
                yield match[1], FUNCTION_POINTER, 1
                continue
            c_type, names = re.match(r"(?:const )?(\w+)\s*(.*)", declaration, flags=re.S).groups()
            for name in names.split(","):
                plain = name.replace("*", "").strip()
                if "*" in name:
                    yield plain, POINTER, 1
                elif match := re.match(r"(\w+)\[(\d+)\]", plain):
                    yield f"{match[1]}({match[2]})", ("character(kind=c_char)", 1, "c_null_char"), int(match[2])
                else:
                    yield plain, self.base(c_type), 1

    def struct(self, name):
        components, end, largest = list(self.components(self.structs[name])), 0, 1
        for _, (_, size, _), count in components:
            end = (end + size - 1) // size * size + size * count
            largest = max(largest, size)
        total = (end + largest - 1) // largest * largest
        lines = [f"  type, bind(C) :: {name}"]
        for component, (fortran, _, initial), _ in components:
            lines.append(f"    {fortran} :: {component} = {total if component == 'size' else initial}")
        return "\n".join([*lines, "  end type"])

    def argument(self, function, text):
        """(name, declaration) of an argument."""
        if match := re.search(r"\(\*(\w+)\)", text):
            return match[1], "type(c_funptr), value"
        const, c_type, stars, name = re.match(r"(const )?(\w+)\s*(\**)\s*(\w*)$", text).groups()
        name = name or NAMES.get(c_type) or c_type.replace("trifactor_", "")
        if c_type.endswith("_options"):
            return "options", f"type({c_type}), intent(in), optional"
        if stars == "**":
            return name, "type(c_ptr), intent(out)"
        if c_type in self.handles:
            return name, "type(c_ptr), value"
        if c_type == "trifactor_view":
            return name, "type(trifactor_view), value"
        if c_type == "trifactor_refinement":
            return name, "type(trifactor_refinement), intent(out), optional"
        if c_type in self.structs:
            intent = "in" if const else "inout"
            return name + ("(*)" if c_type in ARRAYS else ""), f"type({c_type}), intent({intent})"
        if function.endswith(("_diagonal", "_batch_log_det")) and stars:
            return function.split("_batch_")[-1].split("_cholesky_")[-1] + "(*)", "real(c_double), intent(inout)"
        in_memory = c_type == "void" or c_type == "int" and (const or name in ("info", "pivots", "p"))
        if stars and in_memory:
            return name, "type(c_ptr), value"
        return name, self.base(c_type)[0] + (", intent(out)" if stars else ", value")

    def function(self, result, name, arguments):
        declared = [self.argument(name, a) for a in split(arguments)]
        kind = "subroutine" if result == "void" else "function"
        fortran = ("" if result == "void" else "type(c_ptr) " if "*" in result else
                   "type(trifactor_view) " if result == "trifactor_view" else self.base(result)[0] + " ")
        names = ", ".join(argument.replace("(*)", "") for argument, _ in declared)
        lines = [wrapped(f"    {fortran}{kind} {name}({names}) bind(C)", "      "), "      import"]
        grouped = {}
        for argument, declaration in declared:
            grouped.setdefault(declaration, []).append(argument)
        lines += [f"      {declaration} :: {', '.join(names)}" for declaration, names in grouped.items()]
        return "\n".join([*lines, f"    end {kind}"])


def module(header):
    enums = [wrapped("  integer(c_int), parameter :: " + ", ".join(split(" ".join(e.split()))), "    ")
             for e in header.enums]
    return "\n".join([HEAD, *enums, "", *map(header.struct, header.structs), "", "  interface",
                      *(header.function(*f) for f in header.functions), "  end interface", "", TAIL])


if __name__ == "__main__":
    made = module(Header("".join((ROOT / f"include/trifactor/{n}.h").read_text() for n in ("dense", "sparse"))))
    if sys.argv[1:] != ["--check"]:
        TARGET.write_text(made)
    elif TARGET.read_text() != made:
        sys.exit(f"{TARGET.name} is not that of the C headers: run scripts/make_fortran_module.py")
