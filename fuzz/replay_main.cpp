// A main for fuzz targets where libFuzzer is not linked: replays files and folders, so that the targets keep building
// and running in ordinary CI and a crash artefact can be replayed under any compiler and debugger.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "fuzz/target.h"

// Not every target has one.
extern "C" __attribute__((weak)) int LLVMFuzzerInitialize(int* argc, char*** argv);

namespace {

namespace fs = std::filesystem;

// Every regular file of the arguments, folders recursively, in a fixed order. False: an argument does not exist.
bool collect(int argc, char** argv, std::vector<fs::path>& files) {
  for (int n = 1; n < argc; ++n) {
    std::error_code error;
    if (fs::is_directory(argv[n], error)) {
      for (const auto& entry : fs::recursive_directory_iterator(argv[n]))
        if (entry.is_regular_file()) files.push_back(entry.path());
    } else if (fs::is_regular_file(argv[n], error)) {
      files.push_back(argv[n]);
    } else {
      std::fprintf(stderr, "%s: no such file or folder\n", argv[n]);
      return false;
    }
  }
  std::sort(files.begin(), files.end());
  return true;
}

bool read_file(const fs::path& path, std::string& bytes) {
  std::ifstream in(path, std::ios::binary);
  bytes.assign(std::istreambuf_iterator<char>(in), {});
  return in.good() || in.eof();
}

}  // namespace

// Exit codes as of the tool: 0 all replayed, 2 bad arguments, 3 no input reached the thing under test. A finding
// aborts; the last line printed names its file.
int main(int argc, char** argv) {
  std::vector<fs::path> files;
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s FILE|FOLDER...   replays each file as one fuzz input\n", argv[0]);
    return 2;
  }
  if (!collect(argc, argv, files)) return 2;
  if (LLVMFuzzerInitialize) LLVMFuzzerInitialize(&argc, &argv);
  for (const fs::path& path : files) {
    std::string bytes;
    if (!read_file(path, bytes)) {
      std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
      return 2;
    }
    // Flushed before the input runs, so that a crash shows which file did it.
    std::printf("%s\n", path.c_str());
    std::fflush(stdout);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
  const auto& tally = attest::fuzz::tally;
  std::printf("replayed %lld inputs, %lld accepted\n", static_cast<long long>(tally.inputs),
              static_cast<long long>(tally.accepted));
  if (tally.rejected > 0)
    std::printf("%lld of %lld checks were rejected by their kernels\n", static_cast<long long>(tally.rejected),
                static_cast<long long>(tally.checks));
  if (tally.accepted == 0) {
    std::fprintf(stderr, "no input was accepted: this replay proves nothing\n");
    return 3;
  }
  return 0;
}
