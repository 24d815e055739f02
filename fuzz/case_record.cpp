#include "fuzz/case_record.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace attest::fuzz {

CaseRecord::CaseRecord(std::string path) : path_(std::move(path)) {}

CaseRecord::~CaseRecord() { discard(); }

void CaseRecord::discard() {
  if (file_ < 0) return;
  close(file_);
  unlink(path_.c_str());
  file_ = -1;
}

void CaseRecord::fail() const {
  throw std::runtime_error("cannot keep the case at " + path_ + ": " + std::strerror(errno));
}

void CaseRecord::write(std::string_view text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = pwrite(file_, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail();
    done += static_cast<std::size_t>(n);
  }
}

void CaseRecord::begin(const Case& c) {
  if (file_ < 0) file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file_ < 0) fail();
  // Blank to the end of the longest so far: cutting the file takes longer than filling it.
  std::string text = to_text(c);
  longest_ = std::max(longest_, text.size());
  text.resize(longest_, ' ');
  write(text);
}

void CaseRecord::end() {
  if (file_ >= 0) write("-");
}

}  // namespace attest::fuzz
