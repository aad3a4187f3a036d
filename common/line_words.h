#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cairn {

// The words of each line of a file that people write: apart by blanks, without what follows a '#'.
std::vector<std::vector<std::string>> LineWords(std::string_view text);

}  // namespace cairn
