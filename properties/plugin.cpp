#include "properties/plugin.h"

#include <dlfcn.h>

#include <cstring>
#include <deque>
#include <mutex>
#include <set>

#include "impl/registry.h"
#include "oracle/float_environment.h"

namespace attest {
namespace {

// Kernels that plugins described, as we believe them. Never freed: Kernel::abi points here.
attn_kernel& keep(const attn_kernel& kernel) {
  static std::mutex lock;
  static std::deque<attn_kernel> kept;
  const std::scoped_lock hold(lock);
  return kept.emplace_back(kernel);
}

[[noreturn]] void refuse(const std::string& path, const std::string& what) { throw PluginError(path + ": " + what); }

// True if nothing but struct_size and preset is filled in.
bool names_only_a_preset(const attn_contract& c) {
  if (!c.preset) return false;
  // Field by field rather than memcmp: padding bytes of a C initialiser are unspecified.
  for (const ContractField& f : contract_fields(c))
    if (f.number != 0) return false;
  return c.promises == 0 && c.sources == nullptr;
}

std::string known_presets() {
  std::string all;
  for (const attn_contract& p : attn::presets()) all += (all.empty() ? "" : ", ") + std::string(p.preset);
  return all;
}

attn_contract believed_contract(const attn_contract& c, std::int32_t op, const std::string& path,
                                const std::string& kernel) {
  if (c.struct_size != sizeof(attn_contract))
    refuse(path, "kernel " + kernel + ": contract.struct_size is " + std::to_string(c.struct_size) +
                     ", need sizeof(attn_contract) = " + std::to_string(sizeof(attn_contract)));
  attn_contract believed = c;
  if (names_only_a_preset(c)) {
    const attn_contract* preset = attn::find_preset(c.preset);
    if (!preset)
      refuse(path, "kernel " + kernel + ": contract.preset is \"" + c.preset + "\", need one of " + known_presets());
    believed = *preset;
  }
  if (const std::string wrong = contract_problem(believed, op); !wrong.empty())
    refuse(path, "kernel " + kernel + ": " + wrong);
  return believed;
}

// The table's stride is what the plugin was compiled with, not what we were: a newer header may have appended fields.
Kernel read_kernel(const char* at, std::size_t index, const std::string& path) {
  attn_kernel kernel = {};
  std::memcpy(&kernel, at, sizeof kernel);
  const std::string number = "kernel " + std::to_string(index);
  if (!kernel.name || !*kernel.name) refuse(path, number + " has no name");
  for (const char* p = kernel.name; *p; ++p)
    if (!std::strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *p))
      refuse(path, number + ": name \"" + kernel.name + "\" may hold letters, digits, '.', '_' and '-' only");
  if (kernel.op != ATTN_OP_STEP && kernel.op != ATTN_OP_MERGE && kernel.op != ATTN_OP_FORWARD)
    refuse(path, "kernel " + std::string(kernel.name) + ": op is " + std::to_string(kernel.op) +
                     ", need ATTN_OP_STEP (1), ATTN_OP_MERGE (2) or ATTN_OP_FORWARD (3)");
  if (!kernel.supports) refuse(path, "kernel " + std::string(kernel.name) + ": supports is NULL, need a function");
  if (!kernel.run) refuse(path, "kernel " + std::string(kernel.name) + ": run is NULL, need a function");
  kernel.contract = believed_contract(kernel.contract, kernel.op, path, kernel.name);
  kernel.struct_size = sizeof(attn_kernel);
  if (!kernel.summary) kernel.summary = "";

  Kernel out;
  out.abi = &keep(kernel);
  out.name = kernel.name;
  out.origin = path;
  out.contract_name = contract_name(kernel.contract);
  return out;
}

}  // namespace

Plugin load_plugin(const std::string& path) {
  const FloatEnvironmentGuard environment;  // a library built with -ffast-math sets flush-to-zero as it is loaded
  // dlopen searches the library path for a bare name; a plugin is a file.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  // Now: an undefined symbol is a refusal here, not a crash in the middle of a run. Local: two plugins that use the
  // same helper names do not see each other.
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = dlerror();
    refuse(path, std::string("cannot be loaded: ") + (why ? why : "unknown reason"));
  }
  void* symbol = dlsym(library, ATTN_PLUGIN_SYMBOL);
  if (!symbol)
    refuse(path, "exports no symbol " ATTN_PLUGIN_SYMBOL ", need: extern \"C\" const attn_plugin* " ATTN_PLUGIN_SYMBOL
                 "(void)");
  const attn_plugin* table = reinterpret_cast<attn_plugin_v1_fn>(symbol)();
  if (!table) refuse(path, ATTN_PLUGIN_SYMBOL "() returned NULL, need a table of kernels");
  if (table->abi_version != ATTN_ABI_VERSION)
    refuse(path, "ABI version is " + std::to_string(table->abi_version) + ", need " + std::to_string(ATTN_ABI_VERSION) +
                     ": compile it with this version's attention.h");
  if (table->struct_size < sizeof(attn_plugin))
    refuse(path, "struct_size is " + std::to_string(table->struct_size) +
                     ", need at least sizeof(attn_plugin) = " + std::to_string(sizeof(attn_plugin)));
  if (!table->kernels || table->kernel_count == 0) refuse(path, "the table holds no kernels, need at least one");

  Plugin plugin;
  plugin.path = path;
  plugin.name = table->name ? table->name : path;
  const auto* base = reinterpret_cast<const char*>(table->kernels);
  const std::uint32_t stride = table->kernels->struct_size;
  std::set<std::string> names;
  for (std::size_t i = 0; i < table->kernel_count; ++i) {
    const char* at = base + i * stride;
    std::uint32_t size = 0;
    std::memcpy(&size, at, sizeof size);
    if (size < sizeof(attn_kernel) || size != stride || size % alignof(attn_kernel) != 0)
      refuse(path, "kernel " + std::to_string(i) + ": struct_size is " + std::to_string(size) +
                       ", need sizeof(attn_kernel) = " + std::to_string(sizeof(attn_kernel)) +
                       " (or a newer, larger one, the same in every kernel)");
    plugin.kernels.push_back(read_kernel(at, i, path));
    if (!names.insert(plugin.kernels.back().name).second)
      refuse(path, "two kernels are named " + plugin.kernels.back().name + ", need different names");
  }
  std::vector<const attn_kernel*> siblings;
  for (const Kernel& k : plugin.kernels) siblings.push_back(k.abi);
  for (Kernel& k : plugin.kernels) k.siblings = siblings;
  return plugin;
}

}  // namespace attest
