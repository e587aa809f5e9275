// The files of tuning/*.txt, embedded at build time (cmake/embed_tuning.cmake writes the definitions).
#pragma once

namespace trifactor::tuning {

struct EmbeddedFile {
  const char* name;   // "tuning/sm_90.txt"
  const char* text;
};
extern const EmbeddedFile embedded_files[];   // sorted by name
extern const int embedded_file_count;

}  // namespace trifactor::tuning
