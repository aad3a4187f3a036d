#pragma once

#include <string_view>

namespace cairn {

// Whether `text` is well-formed UTF-8, as the Unicode standard's table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF.
bool IsUtf8(std::string_view text);

// The longest beginning of `text`, which is UTF-8, that has at most `bytes` and cuts no letter in two.
std::string_view Utf8Prefix(std::string_view text, size_t bytes);

}  // namespace cairn
