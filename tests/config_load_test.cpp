// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"
#include "core/schema.h"

namespace annulus {
namespace fs = std::filesystem;

namespace {

// A directory of config files that goes away with the object.
class Directory {
 public:
  Directory() {
    std::string name = (fs::temp_directory_path() / "annulus_config_XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Directory() { fs::remove_all(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  std::string write(const std::string& name, const std::string& text) const {
    const fs::path file = path_ / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    return file.string();
  }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

std::string error_of(const std::string& path, const std::vector<std::string>& sets = {}) {
  try {
    load_config(path, sets);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    return error.what();
  }
  return "";
}

Value with_sets(const std::string& text, const std::vector<std::string>& sets) {
  return parse_config(text, "exp.toml", sets);
}

std::string set_error(const std::string& set) {
  try {
    with_sets("seed = 1\n[model]\nlayers = [ { conv = 1 }, { conv = 2 } ]", {{set}});
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    return error.what();
  }
  return "";
}

std::string set_value(const std::string& set) {
  return to_string(*with_sets("", {set}).find("k"));
}

}  // namespace

// "FILE:line:column" of a file of the directory.
std::string place(const Directory& dir, const char* name, int line, int column) {
  return to_string(Location{dir / name, line, column});
}

TEST_CASE("an include lies under the keys of its table") {
  const Directory dir;
  dir.write("machines/node.toml",
            "threads = 8\nseed = 7\n[comm]\ntimeout_s = 60\nbackend = \"mpi\"");
  dir.write("models/part.toml", "classes = 10\n[head]\nunits = 5");
  dir.write("models/net.toml", "include = \"part.toml\"\ninput = [1, 8, 8]\nclasses = 100");
  const std::string path =
      dir.write("exp.toml",
                "include = \"machines/node.toml\"\nseed = 1\n[comm]\ntimeout_s = 5\n[model]\n"
                "include = [\"models/net.toml\"]\nhead.bias = true");
  const Value config = load_config(path, {});
  CHECK(to_string(config) ==
        "{ threads = 8, seed = 1, comm = { timeout_s = 5, backend = \"mpi\" }, model = { classes = "
        "100, head = { units = 5, bias = true }, input = [1, 8, 8] } }");
  CHECK(to_string(config.find("threads")->where) == place(dir, "machines/node.toml", 1, 11));
  CHECK(to_string(config.find("seed")->where) == path + ":2:8");
  CHECK(to_string(config.find_path("comm.backend")->where) ==
        place(dir, "machines/node.toml", 5, 11));
  CHECK(to_string(config.find_path("model.head.units")->where) ==
        place(dir, "models/part.toml", 3, 9));
}

TEST_CASE("of several included files the later one wins") {
  const Directory dir;
  dir.write("a.toml", "x = 1\ny = 1\n[t]\nu = 1\nv = 1");
  dir.write("b.toml", "y = 2\n[t]\nv = 2");
  const std::string path = dir.write("exp.toml", "include = [\"a.toml\", \"b.toml\"]\nz = 3");
  CHECK(to_string(load_config(path, {})) == "{ x = 1, y = 2, t = { u = 1, v = 2 }, z = 3 }");
  // The same file twice, beside each other, is no circle.
  const std::string twice =
      dir.write("twice.toml", "[p]\ninclude = \"a.toml\"\n[q]\ninclude = \"a.toml\"");
  CHECK(load_config(twice, {}).find_path("q.t.u") != nullptr);
}

TEST_CASE("an include that cannot be is an error at its place") {
  const Directory dir;
  const std::string missing = dir.write("exp.toml", "seed = 1\ninclude = [\"sub/no.toml\"]");
  CHECK(error_of(missing) ==
        fmt::format("{}:2:12: '{}' cannot be read: No such file or directory (errno 2)", missing,
                    dir / "sub/no.toml"));
  const std::string number = dir.write("number.toml", "[model]\ninclude = 3");
  CHECK(error_of(number) == number + ":2:11: 'include' must be a file or a list of files, not 3");
  const std::string self = dir.write("sub/self.toml", "include = \"../sub/./self.toml\"");
  CHECK(error_of(self).find("includes itself") != std::string::npos);
  const std::string a = dir.write("a.toml", "include = \"b.toml\"");
  const std::string b = dir.write("b.toml", "\n[model]\ninclude = \"a.toml\"");
  CHECK(error_of(a) == fmt::format("{}:3:11: '{}' includes itself", b, a));
  const std::string broken = dir.write("broken.toml", "x = 1\ny = ");
  const std::string outer = dir.write("outer.toml", "include = \"broken.toml\"");
  CHECK(error_of(outer).find(broken + ":2:") == 0);
}

TEST_CASE("a config that cannot be read is an error with the reason") {
  const Directory dir;
  CHECK(error_of(dir / "no.toml") ==
        fmt::format("'{}' cannot be read: No such file or directory (errno 2)", dir / "no.toml"));
  CHECK(error_of(dir / "") ==
        fmt::format("'{}' cannot be read: Is a directory (errno 21)", dir / ""));
  REQUIRE(mkfifo((dir / "pipe").c_str(), 0600) == 0);
  CHECK(error_of(dir / "pipe") == fmt::format("'{}' is not a regular file", dir / "pipe"));
  CHECK(error_of("/dev/zero") == "'/dev/zero' is not a regular file");
  const std::string path = dir.write("\u00e4 \u6570.toml", "x = \"\xFF\"");
  CHECK(error_of(path) == path + ": not UTF-8 at byte 5");
}

TEST_CASE("the value of a set is TOML where it reads as such, else a string") {
  CHECK(set_value("k=1") == "1");
  CHECK(set_value("k=1e-4") == "0.0001");
  CHECK(set_value("k=true") == "true");
  CHECK(set_value("k=[1, 2]") == "[1, 2]");
  CHECK(set_value("k={a=1}") == "{ a = 1 }");
  CHECK(set_value("k=\"1\"") == "\"1\"");
  CHECK(set_value("k=cosine") == "\"cosine\"");
  CHECK(set_value("k=../data/x y.h5") == "\"../data/x y.h5\"");
  CHECK(set_value("k=a=b") == "\"a=b\"");
  CHECK(set_value("k=") == "\"\"");
  CHECK(set_value(" k = 3 ") == "3");
  CHECK(set_value("k=2024-01-01") == "\"2024-01-01\"");
  CHECK(set_value("k=1\nj=2") == "\"1\\nj=2\"");
  CHECK(set_value("k=[1") == "\"[1\"");
  CHECK(set_value("k=007") == "\"007\"");
  CHECK(set_value("k=inf") == "inf");
}

TEST_CASE("sets make tables, replace values, and the last one wins") {
  const std::string text =
      "[batch]\nglobal = 64\n[model]\nlayers = [ { conv = 1 }, { conv = 2, k = [3, 4] } ]";
  CHECK(to_string(
            with_sets(text, {"batch.global=32", "batch.shards=4", "optimizer.schedule.kind=step",
                             "model.layers.1.k.0=7", "model.layers.0.conv=8", "batch.global=16",
                             "model.layers.0.\"a.b\"=1"})) ==
        "{ batch = { global = 16, shards = 4 }, model = { layers = [{ conv = 8, \"a.b\" = 1 }, { "
        "conv = 2, k = [7, 4] }] }, optimizer = { schedule = { kind = \"step\" } } }");
  CHECK(to_string(with_sets(text, {"model.layers.1={ relu = true }", "batch=3"})) ==
        "{ batch = 3, model = { layers = [{ conv = 1 }, { relu = true }] } }");
}

TEST_CASE("a set that cannot be applied is named by its text") {
  CHECK(set_error("seed") == "--set seed: must be KEY=VALUE, such as --set batch.global=64");
  CHECK(set_error("=1") == "--set =1: must be KEY=VALUE, such as --set batch.global=64");
  CHECK(set_error("a..b=1") == "--set a..b=1: must be KEY=VALUE, such as --set batch.global=64");
  CHECK(set_error("a.=1") == "--set a.=1: must be KEY=VALUE, such as --set batch.global=64");
  CHECK(set_error("a b=1") == "--set a b=1: must be KEY=VALUE, such as --set batch.global=64");
  CHECK(set_error("\"a=1").find("must be KEY=VALUE") != std::string::npos);
  CHECK(set_error("seed.x=1") == "--set seed.x=1: 'seed' is 1, not a table: it has no 'x'");
  CHECK(set_error("model.layers.2.conv=1") ==
        "--set model.layers.2.conv=1: 'model.layers' is a list of 2; '2' is not one of its indices "
        "(from 0)");
  CHECK(set_error("model.layers.-1=1").find("'-1' is not one of its indices") != std::string::npos);
  CHECK(set_error("model.layers.x.y=1").find("'x' is not one of its indices") != std::string::npos);
  CHECK(set_error("k=\xFF") == "--set: not UTF-8 at byte 2 of its text");
  CHECK(set_error("seed=1").empty());
  const Directory dir;
  CHECK(error_of(dir.write("exp.toml", ""), {"a", "b=1", "c"}) ==
        "--set a: must be KEY=VALUE, such as --set batch.global=64\n"
        "--set c: must be KEY=VALUE, such as --set batch.global=64");
}

TEST_CASE("B73 a set keeps 64 bits too") {
  CHECK(set_value("k=9223372036854775807") == "9223372036854775807");
  CHECK(set_error("seed=9223372036854775808") ==
        "--set seed=9223372036854775808: integer out of range: '9223372036854775808' needs over 64 "
        "bits");
  CHECK(set_error("seed=-9223372036854775809").find("integer out of range") != std::string::npos);
}

TEST_CASE("paths are relative to the file that names them, in a set to the working directory") {
  const Directory dir;
  dir.write("models/net.toml", "weights = \"net.h5\"");
  const std::string path =
      dir.write("exp/exp.toml", "file = \"../data/a.h5\"\ninclude = \"../models/net.toml\"");
  const auto read = [&](const std::vector<std::string>& sets) {
    std::string file;
    std::string weights;
    Schema schema;
    schema.key("file", &file, "").path();
    schema.key("weights", &weights, "").path();
    Value config = load_config(path, sets);
    Problems problems;
    schema.fill(config, "", problems);
    problems.throw_if_any();
    schema.resolve_paths(config);
    CHECK(*config.find("file")->get<std::string>() == file);
    CHECK(*config.find("weights")->get<std::string>() == weights);
    return std::pair(file, weights);
  };
  CHECK(read({}) == std::pair(dir / "data/a.h5", dir / "models/net.h5"));
  const fs::path here = fs::current_path();
  CHECK(read({"file=x/b.h5", "weights=/w.h5"}) ==
        std::pair((here / "x/b.h5").string(), std::string("/w.h5")));
  // So is an include that a set adds.
  const std::string include =
      "model.include=" + fs::relative(dir / "models/net.toml", here).string();
  const Value config = load_config(path, std::vector<std::string>{include});
  CHECK(*config.find_path("model.weights")->get<std::string>() == "net.h5");
}

TEST_CASE("B20 misspelt and misplaced keys are all named, those of sets too") {
  std::int64_t epochs = 1;
  double rate = 0.1;
  Schema optimizer;
  optimizer.key("lr", &rate, "");
  optimizer.key("learning_rate", &rate, "");
  Schema train;
  train.key("epochs", &epochs, "");
  Schema schema;
  schema.table("optimizer", optimizer, "");
  schema.table("train", train, "");
  const Value config =
      with_sets("lr = 1\n[optimizer]\nlearning_rat = 0.1\n[train]\nnum-epochs = 3\n[optimiser]\n",
                {"optimizer.lrr=1"});
  Problems problems;
  schema.fill(config, "", problems);
  try {
    problems.throw_if_any();
    FAIL("no problem was found");
  } catch (const Error& error) {
    CHECK(error.exit_code() == 2);
    CHECK(std::string(error.what()) ==
          "--set optimizer.lrr=1: unknown key 'lrr' in [optimizer]; did you mean 'lr'?\n"
          "exp.toml:1:1: unknown key 'lr' at the top level; did you mean 'optimizer.lr'?\n"
          "exp.toml:3:1: unknown key 'learning_rat' in [optimizer]; did you mean 'learning_rate'?\n"
          "exp.toml:5:1: unknown key 'num-epochs' in [train]; did you mean 'epochs'?\n"
          "exp.toml:6:2: unknown key 'optimiser' at the top level; did you mean 'optimizer'?");
  }
}

TEST_CASE("a sweep is a grid with the last key fastest") {
  const Value config = with_sets(
      "name = \"digits\"\n[sweep]\noptimizer.lr = [0.1, 0.2]\n\"batch.global\" = [32, "
      "64]\n[optimizer]\nlr = 1",
      {});
  const std::vector<Value> points = expand_sweep(config);
  REQUIRE(points.size() == 4);
  CHECK(to_string(points[0]) ==
        "{ name = \"digits-optimizer.lr=0.1,batch.global=32\", optimizer = { lr = 0.1 }, batch = { "
        "global = 32 } }");
  CHECK(*points[1].find("name")->get<std::string>() == "digits-optimizer.lr=0.1,batch.global=64");
  CHECK(*points[2].find("name")->get<std::string>() == "digits-optimizer.lr=0.2,batch.global=32");
  CHECK(to_string(points[3].find_path("optimizer.lr")->where) == "exp.toml:3:22");

  const std::vector<Value> words =
      expand_sweep(with_sets("[sweep]\nd.file = [\"a/b c.h5\", [1, 2]]", {}));
  REQUIRE(words.size() == 2);
  CHECK(*words[0].find("name")->get<std::string>() == "d.file=a_b_c.h5");
  CHECK(*words[1].find("name")->get<std::string>() == "d.file=_1__2_");

  const std::vector<Value> none = expand_sweep(with_sets("name = \"x\"", {}));
  REQUIRE(none.size() == 1);
  CHECK(to_string(none[0]) == "{ name = \"x\" }");
  CHECK(to_string(expand_sweep(with_sets("name = \"x\"\n[sweep]", {}))[0]) == "{ name = \"x\" }");
}

TEST_CASE("experiments of a sweep that would share a name are an error") {
  CHECK_THROWS_WITH_AS(
      expand_sweep(parse_config("name = \"x\"\n[sweep]\na = [\"b c\", \"b_c\"]", "exp.toml")),
      doctest::Contains("exp.toml:2:1: two experiments of [sweep] have the name \"x-a=b_c\""),
      Error);
}

TEST_CASE("a sweep that spans nothing is an error with its place") {
  const auto error = [](const std::string& text) {
    try {
      expand_sweep(parse_config(text, "exp.toml"));
    } catch (const Error& problem) {
      CHECK(problem.kind() == ErrorKind::usage);
      return std::string(problem.what());
    }
    return std::string();
  };
  CHECK(error("sweep = 3") == "exp.toml:1:9: 'sweep' must be a table of lists, not 3");
  CHECK(error("[sweep]\nlr = 3\nmu = []\n\"a..b\" = [1]\nx.y = [1]\n\"x.y\" = [2]") ==
        "exp.toml:2:6: 'lr' in [sweep] must be a list of values, not 3\n"
        "exp.toml:3:6: 'mu' in [sweep] must be a list of values, not []\n"
        "exp.toml:4:1: 'a..b' in [sweep] is not a dotted key\n"
        "exp.toml:6:1: 'x.y' is in [sweep] twice");
  CHECK(error("seed = 1\n[sweep]\nseed.x = [1, 2]") ==
        "exp.toml:3:11: 'seed' is 1, not a table: it has no 'x'\n"
        "exp.toml:3:14: 'seed' is 1, not a table: it has no 'x'");
  std::string text = "[sweep]\n";
  for (const char* key : {"a", "b", "c", "d", "e", "f", "g"}) {
    text += std::string(key) + " = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n";
  }
  CHECK(error(text) == "exp.toml:1:1: [sweep] spans more than 10000 experiments");
}

}  // namespace annulus
