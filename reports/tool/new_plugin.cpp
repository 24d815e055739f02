#include <filesystem>
#include <iostream>

#include "reports/skeleton_files.h"
#include "reports/tool/listing.h"
#include "reports/tool/text.h"

namespace attest {

int new_plugin(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::exists(directory) && !(fs::is_directory(directory, error) && fs::is_empty(directory, error)))
    throw UsageError(directory + ": is there already and is not an empty directory");
  fs::create_directories(directory, error);
  if (error) throw UsageError(directory + ": cannot be made: " + error.message());
  for (const SkeletonFile& f : skeleton_files)
    write_whole((fs::path(directory) / f.name).string(), std::string(f.content));
  std::cout << "wrote " << directory << "; build and judge it:\n  cd " << shell_quoted(directory)
            << "\n  c++ -O2 -shared -fPIC kernel.c -o libmine.so\n  attest gate --plugin ./libmine.so\n";
  return 0;
}

}  // namespace attest
