#include "printable.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <cstdint>

namespace program {
namespace {

/// Bytes of the UTF-8 sequence at the beginning of `text`; 0 where it is not valid or a control character.
std::size_t shown_as_it_is(std::string_view text) {
  const auto byte = [&](std::size_t k) { return std::uint32_t(static_cast<unsigned char>(text[k])); };
  if (byte(0) < 0x80) return byte(0) >= ' ' && byte(0) != 0x7f ? 1 : 0;
  const std::size_t size = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < size) return 0;
  std::uint32_t code = byte(0) & (0x7fu >> size);
  for (std::size_t k = 1; k < size; ++k) {
    if ((byte(k) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(k) & 0x3f);
  }
  const bool overlong = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return overlong || surrogate || code > 0x10ffff || code < 0xa0 ? 0 : size;  // up to 0x9f: control characters
}

std::string escaped_but(std::string_view text, char unescaped) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t size = text[0] == unescaped ? 1 : shown_as_it_is(text);
    if (size == 0) shown += fmt::format("\\x{:02x}", unsigned(static_cast<unsigned char>(text[0])));
    shown += text.substr(0, size);
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return shown;
}

}  // namespace

std::string printable(std::string_view name) { return escaped_but(name, ' '); }

std::string printable_lines(std::string_view message) { return escaped_but(message, '\n'); }

std::string json_text(const nlohmann::ordered_json& object) {
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace program
