#include "reports/tool/record.h"

namespace attest {

RecordWriter& operator<<(RecordWriter& out, const CheckResult& r) {
  const auto n = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
  const Finding& f = r.finding;
  out << static_cast<std::uint64_t>(r.outcome) << r.reason << f.where << f.got << f.want << f.error << f.bound
      << f.message << r.worst_ratio << r.worst_o << n(r.elements) << n(r.vacuous_elements) << n(r.undecided_elements);
  return out;
}

CheckResult read_result(RecordReader& in) {
  CheckResult r;
  Finding& f = r.finding;
  const std::uint64_t outcome = in.number();
  if (outcome > static_cast<std::uint64_t>(Outcome::not_run)) throw std::runtime_error("a worker's record is damaged");
  r.outcome = static_cast<Outcome>(outcome);
  r.reason = in.text();
  f.where = in.text();
  f.got = in.real(), f.want = in.real(), f.error = in.real(), f.bound = in.real();
  f.message = in.text();
  r.worst_ratio = in.real();
  r.worst_o = in.real();
  r.elements = static_cast<std::int64_t>(in.number());
  r.vacuous_elements = static_cast<std::int64_t>(in.number());
  r.undecided_elements = static_cast<std::int64_t>(in.number());
  return r;
}

}  // namespace attest
