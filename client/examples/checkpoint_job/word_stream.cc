#include "word_stream.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

absl::StatusOr<WordStream> WordStream::Open(const std::vector<std::string>& roots, double share) {
  namespace fs = std::filesystem;
  static constexpr std::array<std::string_view, 6> kExtensions = {".h", ".hh", ".hpp", ".hxx", ".ipp", ".tcc"};
  std::vector<std::string> found;
  for (const std::string& root : roots) {
    std::error_code error;
    for (fs::recursive_directory_iterator it(root, fs::directory_options::skip_permission_denied, error), end; it != end;
         it.increment(error)) {
      if (error) return absl::UnavailableError("cannot list " + root + ": " + error.message());
      if (it->is_symlink() || !it->is_regular_file()) continue;
      const std::string extension = it->path().extension().string();
      if (std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end()) found.push_back(it->path().string());
    }
    if (error) return absl::UnavailableError("cannot list " + root + ": " + error.message());
  }
  std::sort(found.begin(), found.end());
  WordStream stream;
  double due = 0;
  for (std::string& file : found) {
    due += share;
    if (due < 1 - 1e-9) continue;
    due -= 1;
    stream.files_.push_back(std::move(file));
  }
  if (stream.files_.empty()) return absl::NotFoundError("no header files below the given roots: is a compiler installed?");
  return stream;
}

absl::StatusOr<std::string> WordStream::ReadFile(size_t index) const {
  std::ifstream in(files_[index], std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return absl::UnavailableError("cannot read " + files_[index]);
  return std::move(text).str();
}

void ForEachWord(std::string_view text, const std::function<void(std::string_view)>& each) {
  const auto in_word = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; };
  size_t i = 0;
  while (i < text.size()) {
    while (i < text.size() && !in_word(text[i])) ++i;
    const size_t begin = i;
    while (i < text.size() && in_word(text[i])) ++i;
    if (i > begin) each(text.substr(begin, i - begin));
  }
}
