// SPDX-License-Identifier: Apache-2.0
#include "config/expression.h"

#include <cctype>
#include <charconv>
#include <cstdint>
#include <system_error>
#include <vector>

#include "core/schema.h"

namespace annulus {
namespace {

constexpr int max_depth = 64;

bool starts_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool continues_name(char c) {
  return starts_name(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
}

// Reads and computes in one pass, by descent through the levels of strength.
class Evaluator {
 public:
  Evaluator(std::string_view text, const Value& parameters)
      : text_(text), parameters_(parameters) {}

  Value run() {
    Value value = disjunction();
    skip_space();
    if (at_ < text_.size()) {
      wrong(fmt::format("'{}' is not expected", text_.substr(at_)));
    }
    return value;
  }

 private:
  [[noreturn]] void wrong(const std::string& what) const {
    throw Error(ErrorKind::usage, fmt::format("in \"{}\": {}", text_, what));
  }

  void skip_space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  // Takes a symbol or a word; a word only where it ends.
  bool accept(std::string_view token) {
    skip_space();
    if (!text_.substr(at_).starts_with(token)) return false;
    const std::size_t end = at_ + token.size();
    if (starts_name(token[0]) && end < text_.size() && continues_name(text_[end])) return false;
    at_ = end;
    return true;
  }
  std::string_view take_name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && continues_name(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  Value disjunction() {
    Value left = conjunction();
    while (accept("or")) {
      const bool known = truth(left);
      const bool right = truth(skipping(known, [&] { return conjunction(); }));
      left = Value{known || right, {}};
    }
    return left;
  }
  Value conjunction() {
    Value left = negation();
    while (accept("and")) {
      const bool open = truth(left);
      const bool right = truth(skipping(!open, [&] { return negation(); }));
      left = Value{open && right, {}};
    }
    return left;
  }
  Value negation() {
    if (!accept("not")) return comparison();
    return {!truth(nested([&] { return negation(); })), {}};
  }
  Value comparison() {
    Value left = sum();
    // Longer symbols first: "<" is the start of "<=".
    for (const std::string_view symbol : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (accept(symbol)) return compare(symbol, left, sum());
    }
    return left;
  }
  Value sum() {
    Value left = product();
    for (;;) {
      if (accept("+")) {
        left = combine('+', left, product());
      } else if (accept("-")) {
        left = combine('-', left, product());
      } else {
        return left;
      }
    }
  }
  Value product() {
    Value left = sign();
    for (;;) {
      if (accept("*")) {
        left = combine('*', left, sign());
      } else if (accept("/")) {
        left = combine('/', left, sign());
      } else if (accept("%")) {
        left = combine('%', left, sign());
      } else {
        return left;
      }
    }
  }
  Value sign() {
    if (!accept("-")) return primary();
    return combine('-', Value{std::int64_t{0}, {}}, nested([&] { return sign(); }));
  }
  Value primary() {
    if (accept("(")) {
      Value inner = nested([&] { return disjunction(); });
      if (!accept(")")) wrong("a ')' is missing");
      return inner;
    }
    if (accept("true")) return {true, {}};
    if (accept("false")) return {false, {}};
    if (at_ == text_.size()) wrong("the end comes too early");
    if (text_[at_] == '\'') return quoted_text();
    if (text_[at_] == '$') return parameter();
    return number();
  }
  Value quoted_text() {
    const std::size_t end = text_.find('\'', at_ + 1);
    if (end == std::string_view::npos) wrong("a ' is missing");
    const std::string word(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return {word, {}};
  }
  Value parameter() {
    ++at_;
    const std::string name(take_name());
    if (const Value* value = parameters_.find(name)) return *value;
    std::vector<std::string> known;
    for (const Member& member : *parameters_.get<Value::Table>()) known.push_back(member.key);
    const std::string guess = nearest(name, known);
    wrong(fmt::format("there is no parameter '{}'{}", name,
                      guess.empty() ? "" : "; did you mean '" + guess + "'?"));
  }
  Value number() {
    const char* begin = text_.data() + at_;
    const char* end = text_.data() + text_.size();
    std::int64_t integer = 0;
    double real = 0;
    const auto as_integer = std::from_chars(begin, end, integer);
    const auto as_real = std::from_chars(begin, end, real);
    if (as_real.ec == std::errc::invalid_argument || std::isdigit(*begin) == 0) {
      wrong(fmt::format("'{}' is not expected", text_.substr(at_)));
    }
    at_ += static_cast<std::size_t>(as_real.ptr - begin);
    if (as_real.ptr != as_integer.ptr) return {real, {}};
    if (as_integer.ec != std::errc()) wrong("integer out of range");
    return {integer, {}};
  }

  // Parentheses and signs nest on the stack of this program, so their depth has a limit.
  template <class F>
  Value nested(const F& parse) {
    if (++depth_ > max_depth) wrong("it is nested too deeply");
    Value value = parse();
    --depth_;
    return value;
  }
  // Reads on without computing: what `and` and `or` do not need may be wrong.
  template <class F>
  Value skipping(bool skip, const F& parse) {
    const bool before = skipped_;
    skipped_ = skipped_ || skip;
    Value value = parse();
    skipped_ = before;
    return value;
  }

  bool truth(const Value& value) const {
    if (skipped_) return false;
    const auto* flag = value.get<bool>();
    if (flag == nullptr) wrong(fmt::format("{} is not true or false", to_string(value)));
    return *flag;
  }
  double real(const Value& value) const {
    if (const auto* integer = value.get<std::int64_t>()) return static_cast<double>(*integer);
    if (const auto* number = value.get<double>()) return *number;
    wrong(fmt::format("{} is not a number", to_string(value)));
  }

  Value compare(std::string_view symbol, const Value& a, const Value& b) const {
    if (skipped_) return {false, {}};
    const bool equality = symbol == "==" || symbol == "!=";
    if (equality && a.data.index() == b.data.index() && a.get<Value::Array>() == nullptr &&
        a.get<Value::Table>() == nullptr) {
      return {(to_string(a) == to_string(b)) == (symbol == "=="), {}};
    }
    const auto* left = a.get<std::int64_t>();
    const auto* right = b.get<std::int64_t>();
    if (left != nullptr && right != nullptr) return {holds(symbol, *left, *right), {}};
    return {holds(symbol, real(a), real(b)), {}};
  }
  template <class T>
  static bool holds(std::string_view symbol, T a, T b) {
    if (symbol == "==") return a == b;
    if (symbol == "!=") return a != b;
    if (symbol == "<") return a < b;
    if (symbol == "<=") return a <= b;
    return symbol == ">" ? a > b : a >= b;
  }

  Value combine(char symbol, const Value& a, const Value& b) const {
    if (skipped_) return {std::int64_t{0}, {}};
    const auto* left = a.get<std::int64_t>();
    const auto* right = b.get<std::int64_t>();
    if (left != nullptr && right != nullptr) return {integers(symbol, *left, *right), {}};
    const double x = real(a);
    const double y = real(b);
    if ((symbol == '/' || symbol == '%') && y == 0) wrong("division by zero");
    switch (symbol) {
      case '+':
        return {x + y, {}};
      case '-':
        return {x - y, {}};
      case '*':
        return {x * y, {}};
      case '/':
        return {x / y, {}};
      default:
        wrong("'%' is for integers");
    }
  }
  std::int64_t integers(char symbol, std::int64_t a, std::int64_t b) const {
    std::int64_t result = 0;
    bool overflow = false;
    if (symbol == '+') {
      overflow = __builtin_add_overflow(a, b, &result);
    } else if (symbol == '-') {
      overflow = __builtin_sub_overflow(a, b, &result);
    } else if (symbol == '*') {
      overflow = __builtin_mul_overflow(a, b, &result);
    } else if (b == 0) {
      wrong("division by zero");
    } else if (b == -1) {  // the one division that can overflow
      overflow = symbol == '/' && __builtin_sub_overflow(std::int64_t{0}, a, &result);
    } else {
      result = symbol == '/' ? a / b : a % b;
      if (symbol == '/' && a % b != 0) {
        wrong(fmt::format("{} / {} is not an integer; {} / {}.0 would be a float", a, b, a, b));
      }
    }
    if (overflow) wrong("integer out of range");
    return result;
  }

  std::string_view text_;
  const Value& parameters_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool skipped_ = false;
};

}  // namespace

bool is_expression(std::string_view text) {
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '$' && starts_name(text[i + 1])) return true;
  }
  return false;
}

Value evaluate(const std::string& text, const Value& parameters, const Location& where) {
  try {
    Value value = Evaluator(text, parameters).run();
    value.where = where;
    return value;
  } catch (Error& error) {
    throw Error(error.kind(), error.message()).at(where);
  }
}

}  // namespace annulus
