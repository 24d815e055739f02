#include "reports/tool/bench_turns.h"

#include <algorithm>
#include <cmath>

#include "reports/tool/text.h"

namespace attest {
namespace {

// A scan is seen beside a copy that moves as many bytes, at most this many each way, from and to a place of its own for
// each set of tensors: a short copy, too, is slowed down by its own beginning and end.
constexpr std::size_t most_copied = std::size_t{1} << 30;
std::size_t copied(const BenchCell& cell) {
  return std::min(most_copied, static_cast<std::size_t>(cell.bytes() / 2) / 256 * 256);
}
std::size_t copy_room(const BenchCell& cell, std::size_t sets) {
  return cell.kind == BenchKind::scan ? 2 * sets * copied(cell) : 0;
}

nlohmann::json field_json(const BenchField& f) {
  return {{"name", f.name},
          {"dtype", bench_format(f.dtype)},
          {"shape", f.shape},
          {"offset", f.offset},
          {"bytes", f.bytes()}};
}

nlohmann::json cell_json(const BenchCell& c, const BenchLayout& layout) {
  static const char* const kinds[] = {"copy", "matmul", "forward", "decode", "scan"};
  nlohmann::json out = {{"cmd", "cell"},
                        {"kind", kinds[static_cast<int>(c.kind)]},
                        {"causal", c.causal},
                        {"q_heads", c.q_heads},
                        {"kv_heads", c.kv_heads},
                        {"dtype", bench_format(c.dtype)},
                        {"n", c.rows},
                        {"sets", nlohmann::json::array()},
                        {"outputs", nlohmann::json::array()}};
  for (const auto& set : layout.sets) {
    nlohmann::json fields = nlohmann::json::array();
    for (const BenchField& f : set) fields.push_back(field_json(f));
    out["sets"].push_back(fields);
  }
  for (const BenchField& f : layout.outputs) out["outputs"].push_back(field_json(f));
  return out;
}

}  // namespace

std::size_t bench_block_bytes(const BenchCell& cell, std::size_t l2_bytes) {
  const BenchLayout layout = bench_layout(cell, l2_bytes);
  return layout.bytes + copy_room(cell, layout.sets.size());
}

BenchTurns::BenchTurns(BenchDevice& device, BenchPeer* peer, const BenchPlan& plan, const BenchWatch& watch,
                       const BenchCell& cell, std::byte* block, std::size_t block_bytes, bool shared)
    : device_(device),
      peer_(peer),
      plan_(plan),
      watch_(watch),
      block_(block),
      block_bytes_(block_bytes),
      shared_(shared),
      layout_(bench_layout(cell, device.l2_bytes())) {
  result_.cell = cell;
  result_.sets = layout_.sets.size();
}

void BenchTurns::run() {
  if (layout_.bytes > block_bytes_) {
    result_.skipped = text("needs %.1f GiB of device memory, %.1f are to be had", std::ldexp(layout_.bytes, -30),
                           std::ldexp(block_bytes_, -30));
    return;
  }
  fill();
  find_kernels();
  find_peers();
  for (const Ours& o : ours_) check_kernel(o);
  check_peers();
  take_turns();
}

// Never zeros: the power that a product takes, and with it the clock, depends on the bits.
void BenchTurns::fill() {
  std::uint64_t seed = plan_.seed * 1000;
  for (const auto& set : layout_.sets)
    for (const BenchField& f : set) {
      const bool sum = f.name == "l_in";
      device_.fill(block_ + f.offset, f.dtype, f.count(), ++seed, sum ? 1 : 0, sum ? 0 : 1);
    }
  const std::size_t room = copy_room(result_.cell, layout_.sets.size());
  if (result_.cell.kind == BenchKind::copy || (room > 0 && block_bytes_ >= layout_.bytes + room)) {
    BenchContender c;
    c.name = "copy";
    c.role = BenchRole::yardstick;
    if (result_.cell.kind == BenchKind::scan) {
      c.bytes = 2.0 * static_cast<double>(copied(result_.cell));
      device_.fill(block_ + layout_.bytes, ATTN_FP32, static_cast<std::int64_t>(room / 8), ++seed, 0, 1);
    }
    result_.contenders.push_back(c);
  }
}

std::vector<attn_problem> BenchTurns::problems(bool to_reference) const {
  std::vector<attn_problem> out;
  for (std::size_t s = 0; s < layout_.sets.size(); ++s)
    out.push_back(bench_problem(result_.cell, layout_, block_, s, to_reference));
  return out;
}

BenchCall BenchTurns::call(const attn_kernel& kernel, std::vector<attn_problem> p) {
  const std::size_t bytes = kernel.workspace_size ? kernel.workspace_size(&p[0]) : 0;
  void* const workspace = device_.workspace(bytes);
  return [&kernel, p = std::move(p), workspace, bytes](std::size_t set, void* stream) mutable -> std::string {
    char why[512] = "";
    p[set].stream = stream;
    if (kernel.run(&p[set], workspace, bytes, why, sizeof why) == ATTN_OK) return "";
    return *why ? why : "run() failed without a reason";
  };
}

BenchCall BenchTurns::copy_call() {
  if (result_.cell.kind == BenchKind::scan) {
    const std::size_t bytes = copied(result_.cell), half = layout_.sets.size() * bytes;
    return [this, bytes, half](std::size_t set, void* stream) {
      const std::byte* const from = block_ + layout_.bytes + set * bytes;
      return device_.copy(block_ + layout_.bytes + half + set * bytes, from, bytes, stream);
    };
  }
  const std::byte* const from = block_ + layout_.sets[0][0].offset;
  std::byte* const to = block_ + layout_.outputs[0].offset;
  const std::size_t bytes = layout_.outputs[0].bytes();
  return [this, from, to, bytes](std::size_t, void* stream) { return device_.copy(to, from, bytes, stream); };
}

void BenchTurns::find_kernels() {
  for (const attn_kernel* k : plan_.kernels) {
    if (!suits_cell(*k, result_.cell)) continue;
    BenchContender c;
    c.name = k->name;
    Ours ours = {k, result_.contenders.size(), problems(false)};
    char why[512] = "";
    if (k->supports(&ours.problems[0], why, sizeof why) != ATTN_OK) {
      c.status = BenchStatus::refused;
      c.reason = why;
    } else {
      ours_.push_back(std::move(ours));
    }
    result_.contenders.push_back(std::move(c));
  }
  if (ours_.empty()) return;
  // Once for all of them: growing moves it.
  std::size_t scratch = 0;
  const attn_problem problem = problems(true)[0];
  const auto needs = [&](const attn_kernel& k) {
    if (k.workspace_size) scratch = std::max(scratch, k.workspace_size(&problem));
  };
  for (const Ours& o : ours_) needs(*o.kernel);
  for (const attn_kernel* k : plan_.references)
    if (may_refer(*k, problem)) needs(*k);
  device_.workspace(scratch);
}

bool BenchTurns::may_refer(const attn_kernel& k, const attn_problem& problem) const {
  char why[512] = "";
  return result_.cell.is_attention() && k.op == ATTN_OP_FORWARD && k.contract.in_dtype == result_.cell.dtype &&
         k.supports(&problem, why, sizeof why) == ATTN_OK;
}

void BenchTurns::find_peers() {
  if (!peer_) return;
  if (watch_.progress) watch_.progress(result_.cell.name() + ": the peer makes ready");
  const nlohmann::json answer = peer_->ask(cell_json(result_.cell, layout_));
  BenchContender c;
  c.role = BenchRole::peer;
  if (answer.contains("error")) {
    c.name = "torch";
    c.status = BenchStatus::failed;
    c.reason = answer.value("error", "");
    result_.contenders.push_back(c);
    return;
  }
  for (const auto& name : answer.at("peers")) {
    c.name = name.get<std::string>();
    result_.contenders.push_back(c);
  }
}

void BenchTurns::judge(BenchContender& c, const std::string& against, const BenchDifference& d, std::int32_t dtype) {
  c.differences.emplace_back(against, d);
  if (!bench_is_wrong(d, dtype)) return;
  c.status = BenchStatus::wrong;
  c.reason =
      text("its output differs from that of %s by %.3g where the largest is %.3g", against.c_str(), d.value, d.largest);
  if (d.nonfinite > 0) c.reason += text("; %lld elements are not numbers or were not written", d.nonfinite);
}

// The reference's outputs lie where nothing that is timed writes.
void BenchTurns::compute_reference(const Ours& ours) {
  const attn_problem problem = problems(true)[0];
  if (result_.cell.kind == BenchKind::scan) {
    if (reference_.empty()) device_.reference_scan(problem);
    reference_ = "the definition in fp64";
    return;
  }
  for (const attn_kernel* k : plan_.references) {
    if (k == ours.kernel || !may_refer(*k, problem)) continue;
    if (reference_ == k->name) return;
    for (const BenchField& f : layout_.reference) device_.poison(block_ + f.offset, f.bytes());
    reference_ = device_.run(call(*k, problems(true))).empty() ? k->name : "";
    if (!reference_.empty()) return;
  }
}

void BenchTurns::check_kernel(const Ours& ours) {
  BenchContender& c = result_.contenders[ours.contender];
  if (watch_.progress) watch_.progress(result_.cell.name() + ": checking " + c.name);
  compute_reference(ours);
  for (const BenchField& f : layout_.outputs) device_.poison(block_ + f.offset, f.bytes());
  if (const std::string fault = device_.run(call(*ours.kernel, ours.problems)); !fault.empty()) {
    c.status = BenchStatus::failed;
    c.reason = fault;
    return;
  }
  // Where nothing else takes the cell, beside itself: what was not written is NaN.
  const std::string against = reference_.empty() ? "itself" : reference_;
  for (std::size_t i = 0; i < layout_.outputs.size(); ++i) {
    const BenchField &mine = layout_.outputs[i], &other = reference_.empty() ? mine : layout_.reference[i];
    const BenchDifference d = device_.difference(block_ + mine.offset, block_ + other.offset, mine.dtype, mine.count());
    if (i == 0 || result_.cell.kind == BenchKind::scan || bench_is_wrong(d, mine.dtype))
      judge(c, against + (i == 0 ? "" : " (" + mine.name + ")"), d, mine.dtype);
  }
  if (!peer_ || !shared_ || !result_.cell.is_attention() || c.status != BenchStatus::ok) return;
  for (const BenchContender& p : result_.contenders) {
    if (p.role != BenchRole::peer || p.status != BenchStatus::ok) continue;
    compare(c, p.name);
    break;
  }
}

// The output that our kernel has just left, beside that of a peer.
void BenchTurns::compare(BenchContender& c, const std::string& with) {
  const nlohmann::json a = peer_->ask({{"cmd", "check"}, {"peer", with}});
  if (a.contains("error")) return;  // the peer's own trouble shows where it is timed
  judge(c, with, {a.at("difference").get<double>(), a.at("largest").get<double>(), a.at("nonfinite").get<long long>()},
        result_.cell.dtype);
}

// Each peer's output beside that of our last kernel, which was checked by now.
void BenchTurns::check_peers() {
  if (!peer_ || !shared_ || !result_.cell.is_attention() || ours_.empty()) return;
  const BenchContender& last = result_.contenders[ours_.back().contender];
  if (last.status != BenchStatus::ok) return;
  for (BenchContender& c : result_.contenders) {
    if (c.role != BenchRole::peer || c.status != BenchStatus::ok) continue;
    if (watch_.progress) watch_.progress(result_.cell.name() + ": checking " + c.name);
    const nlohmann::json a = peer_->ask({{"cmd", "check"}, {"peer", c.name}});
    if (a.contains("error")) {
      c.status = BenchStatus::failed;
      c.reason = a.value("error", "");
      continue;
    }
    judge(c, last.name,
          {a.at("difference").get<double>(), a.at("largest").get<double>(), a.at("nonfinite").get<long long>()},
          result_.cell.dtype);
  }
}

void BenchTurns::time_peer(BenchContender& c) {
  const BenchEffort& e = plan_.effort;
  const nlohmann::json a = peer_->ask({{"cmd", "time"},
                                       {"peer", c.name},
                                       {"effort", e.seconds},
                                       {"sample", e.sample},
                                       {"most_calls", e.most_calls},
                                       {"most_samples", e.most_samples},
                                       {"most_alone", e.most_alone}});
  if (a.contains("error")) {
    c.status = BenchStatus::failed;
    c.reason = a.value("error", "");
    return;
  }
  for (const auto& t : a.at("device")) c.times.device.push_back(t.get<double>());
  for (const auto& t : a.at("call")) c.times.call.push_back(t.get<double>());
  c.times.calls = a.at("calls").get<int>();
  c.times.hidden = c.times.hidden && a.at("hidden").get<bool>();
}

void BenchTurns::take_turns() {
  std::vector<BenchCall> calls(result_.contenders.size());
  for (const Ours& o : ours_) calls[o.contender] = call(*o.kernel, o.problems);
  for (int round = 0; round < plan_.rounds; ++round)
    for (std::size_t i = 0; i < result_.contenders.size(); ++i) {
      BenchContender& c = result_.contenders[i];
      if (c.status != BenchStatus::ok) continue;
      if (stopped()) return;
      if (watch_.progress)
        watch_.progress(
            text("%s: %s, round %d of %d", result_.cell.name().c_str(), c.name.c_str(), round + 1, plan_.rounds));
      if (c.role == BenchRole::peer) {
        time_peer(c);
        continue;
      }
      const BenchTimes t =
          device_.time(c.role == BenchRole::yardstick ? copy_call() : calls[i], result_.sets, plan_.effort);
      c.times.device.insert(c.times.device.end(), t.device.begin(), t.device.end());
      c.times.call.insert(c.times.call.end(), t.call.begin(), t.call.end());
      c.times.calls = t.calls;
      c.times.hidden = c.times.hidden && t.hidden;
    }
  result_.clocks = device_.clocks();
}

}  // namespace attest
