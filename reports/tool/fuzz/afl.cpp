#include "reports/tool/fuzz/afl.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>

#include "oracle/philox.h"
#include "reports/tool/fuzz/afl_stats.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

// TARGET.afl/start is afl-fuzz's -i and TARGET.afl/sync its -o. It is there for one turn.
fs::path aside(const FuzzTarget& target, const FuzzFolder& folder) { return folder.inputs(target).string() + ".afl"; }

std::string worker_name(int number) { return number == 0 ? "main" : text("worker-%d", number); }

std::vector<fs::path> files_of(const fs::path& folder) {
  std::error_code none;
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (entry.is_regular_file(none)) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

// Every worker's folder of that name: queue, crashes, hangs.
std::vector<fs::path> folders(const fs::path& sync, const char* name) {
  std::error_code none;
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(sync, none))
    if (fs::is_directory(entry.path() / name, none)) out.push_back(entry.path() / name);
  std::sort(out.begin(), out.end());
  return out;
}

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// By content, so that what two workers found is kept once, and never under a name that means something else.
std::string name_of(const fs::path& file) {
  std::uint64_t hash = fnv_offset;
  for (const char byte : content_of(file)) hash = fnv1a(hash, static_cast<std::uint8_t>(byte));
  return text("afl-%016llx", static_cast<unsigned long long>(hash));
}

// afl-fuzz takes one folder, which must not be empty.
void fill(const fs::path& start, const FuzzTarget& target, const FuzzFolder& folder) {
  std::error_code error;
  fs::create_directories(start, error);
  for (const fs::path& from : {folder.inputs(target), fs::path(folder.stored(target))})
    for (const fs::path& file : files_of(from))
      fs::copy_file(file, start / file.filename(), fs::copy_options::skip_existing, error);
  if (files_of(start).empty()) std::ofstream(start / "any") << "0";
}

bool is_installed(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  return false;
}

}  // namespace

Afl::Afl() {
  if (!is_installed("afl-fuzz")) throw UsageError("there is no afl-fuzz on PATH; it is AFL++: apt-get install afl++");
}

FuzzCommand Afl::worker(const FuzzTarget& target, const FuzzFolder& folder, int number, double seconds,
                        std::uint64_t seed) {
  const fs::path start = aside(target, folder) / "start", sync = aside(target, folder) / "sync";
  if (number == 0) fill(start, target, folder);
  std::vector<std::string> words = {
      "afl-fuzz",
      number == 0 ? "-M" : "-S",
      worker_name(number),
      "-i",
      start.string(),
      "-o",
      sync.string(),
      "-s",
      text("%llu", static_cast<unsigned long long>(seed % 0x7fffffffu + 1)),
      "-V",
      text("%lld", static_cast<long long>(std::max(1.0, std::ceil(seconds)))),
      // As libFuzzer's workers: 60 s for an input, and 4 GiB.
      "-t",
      "60000",
      "-m",
      "4096",
  };
  const auto options = target.options();
  if (const auto longest = options.find("max_len"); longest != options.end())
    words.insert(words.end(), {"-G", longest->second});
  if (const auto dictionary = options.find("dict"); dictionary != options.end())
    words.insert(words.end(), {"-x", dictionary->second});
  words.insert(words.end(), {"--", target.program});
  return {words,
          {
              {"AFL_NO_UI", "1"},
              // Settings of the machine, which are not ours to change.
              {"AFL_SKIP_CPUFREQ", "1"},
              {"AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES", "1"},
              {"AFL_NO_AFFINITY", "1"},
              // Three runs of an input instead of eight before it is used: every turn begins with all of them.
              {"AFL_FAST_CAL", "1"},
              // Minutes after which workers read what the others found; 20 otherwise.
              {"AFL_SYNC_TIME", "1"},
              // A worker that finds a queue of its own, which gather() could not move, goes on with it.
              {"AFL_AUTORESUME", "1"},
              // Our targets' own words: the worst error/bound, and why they cannot begin.
              {"AFL_DEBUG_CHILD", "1"},
              // No case for each crash: the replay of its bytes leaves one.
              {"ATTEST_FUZZ_CASES", ""},
          }};
}

// The driver that afl-clang-fast links runs the files that it is given.
std::vector<std::string> Afl::replay(const FuzzTarget& target, const std::string& bytes) const {
  return {target.program, bytes};
}

std::optional<FuzzStatus> Afl::status(const FuzzTarget& target, const FuzzFolder& folder, int number) const {
  const fs::path own = aside(target, folder) / "sync" / worker_name(number);
  FuzzStatus s = afl_stats(content_of(own / "fuzzer_stats"));
  const FuzzStatus plot = afl_plot(content_of(own / "plot_data"));
  s.executions = std::max(s.executions, plot.executions);
  s.edges = std::max(s.edges, plot.edges);
  return s;
}

std::optional<FuzzCrash> Afl::take(const FuzzTarget& target, const FuzzFolder& folder, const fs::path& bytes,
                                   const std::string& words) {
  const fs::path kept = folder.findings() / (target.name + "-crash-" + name_of(bytes));
  if (!taken_.insert(kept.string()).second) return std::nullopt;
  std::error_code error;
  fs::copy_file(bytes, kept, fs::copy_options::overwrite_existing, error);
  if (error) return std::nullopt;
  return FuzzCrash{kept.string(), words};
}

std::vector<FuzzCrash> Afl::crashes(const FuzzTarget& target, const FuzzFolder& folder) {
  std::vector<FuzzCrash> out;
  for (const char* kind : {"crashes", "hangs"})
    for (const fs::path& from : folders(aside(target, folder) / "sync", kind))
      for (const fs::path& file : files_of(from)) {
        std::error_code error;
        const std::string name = file.filename().string();
        // An empty one is about to be written.
        if (!name.starts_with("id") || fs::file_size(file, error) == 0 || !taken_.insert(file.string()).second)
          continue;
        if (auto crash = take(target, folder, file, afl_death(name))) out.push_back(*crash);
      }
  return out;
}

// "[!] WARNING: Test case 'id:000003,time:0,execs:0,orig:NAME' results in a crash, skipping": no file of crashes has
// it.
std::optional<FuzzCrash> Afl::crash(const FuzzTarget& target, const FuzzFolder& folder, int number,
                                    const std::string& line) {
  constexpr std::string_view before = "Test case '", after = "' results in a ";
  const std::size_t begin = line.find(before), end = line.find(after);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return std::nullopt;
  const std::string name = line.substr(begin + before.size(), end - begin - before.size());
  return take(target, folder, aside(target, folder) / "sync" / worker_name(number) / "queue" / name,
              "a " +
                  line.substr(end + after.size(), line.find_first_of(", ", end + after.size()) - end - after.size()) +
                  " on an input of the campaign");
}

void Afl::gather(const FuzzTarget& target, const FuzzFolder& folder) {
  std::error_code error;
  for (const fs::path& queue : folders(aside(target, folder) / "sync", "queue"))
    for (const fs::path& file : files_of(queue)) {
      // What it was given is in the inputs, and what came from another worker is in that one's queue.
      const std::string name = file.filename().string();
      if (!name.starts_with("id") || name.find(",orig:") != std::string::npos ||
          name.find(",sync:") != std::string::npos)
        continue;
      const fs::path kept = folder.inputs(target) / name_of(file);
      if (!fs::exists(kept, error)) fs::rename(file, kept, error);
      if (error) return;  // it stays where it is, for the next time
    }
  std::erase_if(taken_, [&](const std::string& file) { return file.starts_with(aside(target, folder).string()); });
  fs::remove_all(aside(target, folder), error);
}

}  // namespace attest
