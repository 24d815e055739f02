// A few things by name, in the order of their names: what std::map<std::string, T> is, in one piece of memory. Cases
// are copied and looked up at every check, and have a handful of tensors and parameters with names of a few letters.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attest {

// a == b and a < b without a call: names are short, and an engine that watches comparisons would watch these.
constexpr bool same_name(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) return false;
  return true;
}
constexpr bool name_before(std::string_view a, std::string_view b) {
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
    if (a[i] != b[i]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[i]);
  return a.size() < b.size();
}

// Unlike a map, an insertion or removal moves the others: references to them do not survive it.
template <class T>
class Named {
 public:
  using value_type = std::pair<std::string, T>;
  using iterator = typename std::vector<value_type>::iterator;
  using const_iterator = typename std::vector<value_type>::const_iterator;

  Named() = default;
  Named(std::initializer_list<value_type> entries) {
    for (const value_type& e : entries) emplace(e.first, e.second);
  }

  iterator begin() { return entries_.begin(); }
  iterator end() { return entries_.end(); }
  const_iterator begin() const { return entries_.begin(); }
  const_iterator end() const { return entries_.end(); }
  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  void clear() { entries_.clear(); }
  void reserve(std::size_t n) { entries_.reserve(n); }

  iterator find(std::string_view name) {
    return begin() + (std::as_const(*this).find(name) - std::as_const(*this).begin());
  }
  const_iterator find(std::string_view name) const {
    const const_iterator at = place(name);
    return at != end() && !name_before(name, at->first) ? at : end();
  }
  bool contains(std::string_view name) const { return find(name) != end(); }
  std::size_t count(std::string_view name) const { return contains(name) ? 1 : 0; }

  T& at(std::string_view name) { return const_cast<T&>(std::as_const(*this).at(name)); }
  const T& at(std::string_view name) const {
    const const_iterator found = find(name);
    if (found == end()) throw std::out_of_range("nothing is named '" + std::string(name) + "' here");
    return found->second;
  }

  // The entry of that name, made if there is none.
  T& operator[](std::string_view name) {
    const const_iterator at = place(name);
    if (at != end() && !name_before(name, at->first))
      return entries_[static_cast<std::size_t>(at - std::as_const(*this).begin())].second;
    return entries_.emplace(at, std::string(name), T())->second;
  }
  // Leaves an entry of that name as it is.
  template <class... Arguments>
  void emplace(std::string_view name, Arguments&&... arguments) {
    const const_iterator at = place(name);
    if (at != end() && !name_before(name, at->first)) return;
    entries_.emplace(at, std::string(name), T(std::forward<Arguments>(arguments)...));
  }
  void erase(const_iterator at) { entries_.erase(at); }
  void erase(std::string_view name) {
    if (const const_iterator at = find(name); at != end()) entries_.erase(at);
  }

  bool operator==(const Named&) const = default;

 private:
  const_iterator place(std::string_view name) const {
    return std::lower_bound(begin(), end(), name,
                            [](const value_type& e, std::string_view n) { return name_before(e.first, n); });
  }
  std::vector<value_type> entries_;
};

}  // namespace attest
