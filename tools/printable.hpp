// Text from outside, as messages and JSON show it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace program {

/// A file's name in a message: control characters and bytes that are not UTF-8 become \xNN, so that it stays one line
/// that no terminal obeys.
std::string printable(std::string_view name);

/// The same for a message of several lines.
std::string printable_lines(std::string_view message);

/// The object in one line. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(const nlohmann::ordered_json&);

}  // namespace program
