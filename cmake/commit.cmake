# Writes OUTPUT: TRIFACTOR_COMMIT, the commit of SOURCE ("-dirty" when tracked files differ), "unknown" outside git. QUICK: kernels
# are not those that are to be measured, and it says so.
if(NOT COMMIT)
  execute_process(COMMAND git rev-parse --short=7 HEAD WORKING_DIRECTORY ${SOURCE}
                  OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    set(COMMIT unknown)
  else()
    execute_process(COMMAND git status --porcelain --untracked-files=no WORKING_DIRECTORY ${SOURCE}
                    OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
      string(APPEND COMMIT -dirty)
    endif()
  endif()
endif()
if(QUICK)
  string(APPEND COMMIT -quick-kernels)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#pragma once\n\n#define TRIFACTOR_COMMIT \"${COMMIT}\"\n")
