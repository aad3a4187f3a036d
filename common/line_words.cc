#include "common/line_words.h"

#include <algorithm>

namespace cairn {

std::vector<std::vector<std::string>> LineWords(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  std::vector<std::vector<std::string>> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    std::vector<std::string>& words = lines.emplace_back();
    for (size_t begin = line.find_first_not_of(kBlanks); begin != std::string_view::npos; begin = line.find_first_not_of(kBlanks)) {
      line.remove_prefix(begin);
      const size_t length = std::min(line.find_first_of(kBlanks), line.size());
      words.emplace_back(line.substr(0, length));
      line.remove_prefix(length);
    }
  }
  return lines;
}

}  // namespace cairn
