// Text from outside as a message shows it.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace trifactor::core {

/// Bytes that are not printable ASCII become \xNN, and what is long is cut: a message stays one line that no terminal obeys.
inline std::string printable(std::string_view text) {
  constexpr std::size_t max_size = 200;
  std::string shown;
  for (const char c : text.substr(0, max_size)) {
    char code[8];
    std::snprintf(code, sizeof code, "\\x%02x", unsigned(static_cast<unsigned char>(c)));
    if (c == '\\')
      shown += "\\\\";
    else if (c >= ' ' && c <= '~')
      shown += c;
    else
      shown += code;
  }
  if (text.size() > max_size) shown += "...";
  return shown;
}

}  // namespace trifactor::core
