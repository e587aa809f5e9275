// What gzip compressed, unpacked while it is read.
#pragma once

#include "input_file.hpp"

namespace program {

/// `name` is that of messages. The unpacked text may be a thousand times as long: who reads sets the limit.
std::unique_ptr<ByteSource> make_gzip_source(std::unique_ptr<ByteSource> packed, const std::string& name);

}  // namespace program
