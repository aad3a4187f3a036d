#!/usr/bin/env python3
"""House rules as a test: what a review would say twice.

Each rule is a function from a tree ({path from the root: text}) to complaints, "path:line: what, and what instead". Each has a
self-test: a sample it must refuse, and one it must not."""

import os
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
SELF = "tests/tidy_test.py"
CODE = ("client/", "common/", "datanode/", "namenode/", "tests/")
TEXT = (".cc", ".h", ".py", ".sh", ".txt", ".cmake", ".proto", ".md", ".yaml", ".supp", "")
LONGEST_LINE = 140
LONGEST_FILE = 600


def read_tree():
    tree = {}
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if f not in ("build", ".git", ".cache", "__pycache__")]
        for name in names:
            path = pathlib.Path(folder) / name
            if path.suffix in TEXT and name not in ("LICENSE", ".git") and not path.is_symlink():
                try:
                    tree[str(path.relative_to(ROOT))] = path.read_text(encoding="utf-8")
                except UnicodeDecodeError:
                    pass  # Golden bytes.
    return tree


def is_cpp(path):
    return path.startswith(CODE) and path.endswith((".cc", ".h"))


def cpp(tree):
    return [(path, text) for path, text in sorted(tree.items()) if is_cpp(path)]


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


LITERALS = re.compile(r'R"(\w*)\((?:.|\n)*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|//[^\n]*|/\*(?:.|\n)*?\*/')


def strip_comments_and_literals(text):
    """The text with comments, strings and characters blanked; every other byte where it was."""
    def replace(match):
        found = match.group(0)
        if found.startswith(("//", "/*")):
            return blank(match)
        return found[0] + re.sub(r"[^\n]", " ", found[1:-1]) + found[-1]
    return LITERALS.sub(replace, text)


def strip_comments(text):
    """The same, with literals left."""
    return LITERALS.sub(lambda m: blank(m) if m.group(0).startswith(("//", "/*")) else m.group(0), text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def search_all(tree, pattern, allowed, what, strip=strip_comments_and_literals):
    """Complaints for each match of `pattern` in C++ outside of the `allowed` path patterns."""
    compiled = re.compile(pattern, re.M)
    complaints = []
    for path, text in cpp(tree):
        if any(re.match(a, path) for a in allowed):
            continue
        for match in compiled.finditer(strip(text)):
            complaints.append(f"{path}:{line_of(text, match.start())}: {match.group(0).strip()}: {what}")
    return complaints


INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.M)


def includes(tree):
    for path, text in cpp(tree):
        for match in INCLUDE.finditer(strip_comments(text)):
            yield path, line_of(text, match.start()), match.group(2)


def part_of_include(header):
    """Which part a header of ours belongs to; nothing for others'."""
    if header.endswith(".pb.h"):
        return "proto"
    for part in ("common", "namenode", "datanode", "client", "tests"):
        if header.startswith(part + "/"):
            return part
    return "client" if header.startswith("cairn/") else None


# Who may include what: proto <- common <- {namenode | datanode | client} <- tests.
LAYERS = {
    "common": {"proto", "common"},
    "namenode": {"proto", "common", "namenode"},
    "datanode": {"proto", "common", "datanode"},
    "client": {"proto", "common", "client"},
    "tests": {"proto", "common", "namenode", "datanode", "client", "tests"},
}


def rule_layers(tree):
    complaints = []
    for path, line, header in includes(tree):
        own, other = path.split("/")[0], part_of_include(header)
        if other and other not in LAYERS[own]:
            complaints.append(f"{path}:{line}: {own}/ may not include {header}; shared things live in common/ or proto/")
    return complaints


# Headers that only some places may include.
RIMS = (
    (r"grpc(pp)?/|grpc\+\+/", (r"common/rpc/",), "gRPC stays in common/rpc"),
    (r"rocksdb/", (r"namenode/(store|journal)/", r"common/env/.*\.cc$", r"client/examples/", r"tests/"),
     "RocksDB stays in namenode/store, namenode/journal and the environments"),
    (r"(fcntl|unistd|dirent|netdb|poll|termios|pwd|grp|aio|liburing)\.h$|sys/|netinet/|arpa/|linux/",
     (r"common/env/real_", r"client/(examples|cli)/", r"tests/"),
     "POSIX I/O stays in common/env/real_*; use LocalFileSystem and Network"),
    (r"(fstream|filesystem)$", (r"common/env/real_", r"common/(config|metrics)\w*\.cc$", r"client/(examples|cli)/", r"tests/"),
     "files are opened through LocalFileSystem"),
    (r"thread$", (r"common/env/", r"common/http/server\.cc$", r"client/examples/", r"tests/"),
     "threads are made in common/env; take an Executor"),
    # That is how the library's users cancel what they have begun.
    (r"stop_token$", (r"common/env/", r"client/include/cairn/options\.h$", r"client/examples/", r"tests/"),
     "threads are stopped in common/env; take a TaskGroup"),
    (r"mutex$|condition_variable$|shared_mutex$|semaphore$",
     (r"common/mutex\.(h|cc)$", r"common/env/", r"client/examples/", r"tests/"),
     "use common/mutex.h"),
    (r"boost/(asio|beast)(\.hpp|/(?!awaitable\.hpp$|any_io_executor\.hpp$))",
     (r"common/(env|http|rpc)/.*\.cc$", r"common/task_group\.cc$", r"tests/testing/", r"tests/bench/", r"tests/common/"),
     "Asio's heavy headers stay in the sources of common/env, common/http and common/rpc; elsewhere <boost/asio/awaitable.hpp>"),
)


def rule_rims(tree):
    complaints = []
    for path, line, header in includes(tree):
        for pattern, allowed, what in RIMS:
            if re.match(pattern, header) and not any(re.match(a, path) for a in allowed):
                complaints.append(f"{path}:{line}: {header}: {what}")
    return complaints


def rule_world(tree):
    """Time, chance and threads are injected."""
    return search_all(
        tree,
        r"\b(system_clock|steady_clock|high_resolution_clock)\b|\babsl::Now\s*\(|\bgettimeofday\b|\bclock_gettime\b|(?<![\w.>:])time\s*\(\s*(nullptr|NULL|0)\s*\)",
        (r"common/env/", r"common/mutex\.cc$", r"client/examples/", r"tests/(bench|testing|process|cluster)/"),
        "clocks are injected: use common/env/clock.h",
    ) + search_all(
        tree, r"\bsleep_(for|until)\b|\babsl::SleepFor\b|\b(usleep|nanosleep)\s*\(|(?<![\w.>:])sleep\s*\(",
        (r"common/env/", r"client/examples/", r"tests/(bench|testing|process)/"), "nothing sleeps: wait for an event",
    ) + search_all(
        tree, r"\bstd::j?thread\b|\bstd::async\b", (r"common/env/", r"common/http/server\.cc$", r"client/examples/", r"tests/"),
        "threads are made in common/env: take an Executor",
    ) + search_all(
        tree, r"\brandom_device\b|\bmt19937(_64)?\b|\bdefault_random_engine\b|(?<![\w.>])s?rand(om)?\s*\(\s*\)|\babsl::BitGen\b",
        (r"common/env/", r"tests/bench/"), "chance is injected: use common/env/random.h",
    )


def rule_repeatable(tree):
    return search_all(tree, r"\bstd::shuffle\b|\bstd::\w+_distribution\b", (), "differs between standard libraries: use common/env/random.h")


def rule_detached(tree):
    return search_all(tree, r"\basio::detached\b|\bco_spawn\s*\([^;]*\bdetached\b", (), "swallows exceptions: spawn through TaskGroup")


def rule_types(tree):
    return search_all(
        tree, r"\babsl::(string_view|optional|Mutex|MutexLock|variant|make_unique)\b", (),
        "the std:: type, or common/mutex.h (docs/decisions)",
    ) + search_all(
        tree, r"\bstd::(mutex|recursive_mutex|shared_mutex|lock_guard|unique_lock|scoped_lock)\b",
        (r"common/mutex\.(h|cc)$", r"common/env/", r"client/examples/", r"tests/"), "common/mutex.h is annotated and knows who may block",
    ) + search_all(
        tree, r"(?<![\w.>])throw\b(?! std::bad_alloc)", (r"tests/",), "no exceptions of ours: return a Status")


def rule_co_await(tree):
    """g++ 12 destroys some temporaries of a co_await expression twice: lambdas with captures, braced aggregates."""
    complaints = []
    for path, text in cpp(tree):
        code = strip_comments_and_literals(text)
        for match in re.finditer(r"\bco_await\b", code):
            depth = 0
            for at in range(match.end(), len(code)):
                c = code[at]
                if c in "(":
                    depth += 1
                elif c == ")":
                    depth -= 1
                    if depth < 0:
                        break
                elif c == ";":
                    break
                elif c == "{":
                    complaints.append(f"{path}:{line_of(text, match.start())}: a brace in a co_await expression: name the value on the line before, then std::move it in")
                    break
                elif c == "[" and re.search(r"[(,=?:&|]\s*$", code[match.end():at]) and not re.match(r"\[\s*\]", code[at:]):
                    complaints.append(f"{path}:{line_of(text, match.start())}: a lambda with captures in a co_await expression: name it on the line before, then std::move it in")
                    break
    return complaints


OWNED = re.compile(r"thread|executor|owned|owner|\bonly\b|writer|before|constructor|immutable|never chang|constant|lock|guard|task", re.I)
NOT_A_FIELD = re.compile(r"^(using|friend|static|typedef|enum|class|struct|union|template|virtual|explicit|operator|return|public|private|protected)\b")


def class_bodies(code):
    """(name, offset after '{', offset of '}') of each class and struct."""
    for match in re.finditer(r"\b(?:class|struct)\s+(?:ABSL_\w+(?:\([^)]*\))?\s+)?(?:alignas\([^)]*\)\s+)?([\w:]+)\s*(?:final\s*)?(?::[^;{()]*)?\{", code):
        depth = 1
        at = match.end()
        while at < len(code) and depth:
            depth += {"{": 1, "}": -1}.get(code[at], 0)
            at += 1
        yield match.group(1), match.end(), at - 1


def direct_statements(code, begin, end):
    """(offset, statement) of the declarations directly in a class body: nested bodies are blanked."""
    depth, start, out = 0, begin, []
    for at in range(begin, end):
        c = code[at]
        if c == "{":
            depth += 1
        elif c == "}":
            depth -= 1
            if depth == 0 and not re.match(r"\s*[;,]|\s*ABSL_", code[at + 1:end]):
                out, start = [], at + 1  # A function's body ends a declaration without a semicolon.
                continue
        if depth == 0 and c == ":" and re.fullmatch(r"\s*(public|private|protected)\s*", "".join(out)):
            out, start = [], at + 1
            continue
        if depth == 0 and c == ";":
            statement = "".join(out)
            yield start + len(statement) - len(statement.lstrip()), statement.strip()
            out, start = [], at + 1
            continue
        out.append(c if depth == 0 and c != "}" else ("\n" if c == "\n" else " "))


def without_templates(statement):
    previous = None
    while previous != statement:
        previous = statement
        statement = re.sub(r"<[^<>]*>", " ", statement)
    return statement


def rule_guarded(tree):
    complaints = []
    for path, text in cpp(tree):
        if path in ("common/mutex.h", "common/mutex.cc"):
            continue
        code = strip_comments_and_literals(text)
        lines = text.splitlines()
        for name, begin, end in class_bodies(code):
            fields = []
            locked = False
            for offset, statement in direct_statements(code, begin, end):
                plain = " ".join(without_templates(statement).split())
                if re.match(r"(mutable )?Mutex \w+", plain):
                    locked = True
                    continue
                bare = re.sub(r"\bABSL_\w+\s*\([^()]*\)", " ", plain)
                bare = re.sub(r"=.*", "", bare, flags=re.S)
                if NOT_A_FIELD.match(bare) or "(" in bare or not re.search(r"[\w>*&\]]\s+[*&]*\w+(\[.*\])?\s*$", bare):
                    continue
                fields.append((offset, statement, plain, bare))
            if not locked:
                continue
            for offset, statement, plain, bare in fields:
                if "GUARDED_BY" in plain or "&" in bare or re.search(r"\bconst\b(?! \w+(::\w+)*\s*\*\s*\w+$)", bare):
                    continue
                if re.match(r"(mutable )?(std::atomic|CondVar|ExecutorFactory)\b", bare.strip()):
                    continue
                first, last = line_of(text, offset), line_of(text, offset + len(statement))
                comment = " ".join(line.split("//", 1)[1] for line in lines[first - 1:last] if "//" in line)
                above = first - 2  # One comment may stand over a group of fields, up to a blank line.
                while above >= 0 and lines[above].strip() and not re.match(r"\s*(public|private|protected):|.*\{$", lines[above]):
                    if lines[above].strip().startswith("//"):
                        comment += " " + lines[above]
                    above -= 1
                if not OWNED.search(comment):
                    complaints.append(f"{path}:{first}: {name}: '{plain}' beside a Mutex is neither guarded, const, nor says which thread owns it")
    return complaints


# Words that have no place in what we ship: notes to ourselves, and the place where it was written.
BANNED = re.compile(
    r"\b(TODO|FIXME|XXX|HACK|WIP)\b|/work/|\.\./shared|shared/(design|reference|cases)|\bsub-?agents?\b|\b(coding|AI) (agent|assistant)|"
    r"\blanguage model\b|\bissue #?\d+\b|\bissues? (show|list)\b|\bhelper session\b", re.I)


def rule_words(tree):
    complaints = []
    for path, text in sorted(tree.items()):
        if path == SELF:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            match = BANNED.search(line)
            if match and not (match.group(0).lower() in ("hack", "wip", "todo", "fixme") and not match.group(0).isupper()):
                complaints.append(f"{path}:{number}: '{match.group(0)}' does not belong here")
    return complaints


def rule_sizes(tree):
    complaints = []
    for path, text in sorted(tree.items()):
        if path.endswith(".md") or path == SELF:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > LONGEST_LINE:
                complaints.append(f"{path}:{number}: {len(line)} columns, at most {LONGEST_LINE}")
        if is_cpp(path) and text.count("\n") > LONGEST_FILE:
            complaints.append(f"{path}:1: {text.count(chr(10))} lines, at most {LONGEST_FILE}: look for a second noun in it")
    return complaints


def rule_pragma_once(tree):
    return [f"{path}:1: #pragma once is missing" for path, text in cpp(tree)
            if path.endswith(".h") and not re.search(r"^#pragma once$", text, re.M)]


FAULT = re.compile(r'\bFault(?:Point|Hold)\(\s*"([^"]+)"')


def rule_fault_points(tree):
    tests = "\n".join(text for path, text in tree.items() if path.startswith(("tests/", "deploy/dev/")) and path != SELF)
    complaints = []
    for path, text in cpp(tree):
        if path.startswith("tests/"):
            continue
        for match in FAULT.finditer(strip_comments(text)):
            if not re.search(rf"(?<![\w.]){re.escape(match.group(1))}(?![\w])", tests):
                complaints.append(f"{path}:{line_of(text, match.start())}: fault point {match.group(1)} is named by no test")
    return complaints


def rule_built(tree):
    """A source that no CMakeLists.txt names is dead; a test that isn't built is no test."""
    named = set()
    for path, text in tree.items():
        if path.endswith("CMakeLists.txt"):
            folder = os.path.dirname(path)
            named.update(os.path.normpath(os.path.join(folder, name)) for name in re.findall(r"[\w./+-]+\.cc\b", text))
    return [f"{path}:1: no CMakeLists.txt names it" for path, _ in cpp(tree) if path.endswith(".cc") and path not in named]


RULES = {name.removeprefix("rule_"): function for name, function in sorted(globals().items()) if name.startswith("rule_")}


class HouseRules(unittest.TestCase):
    """The tree keeps each rule; one test a rule, made below."""


def check(rule):
    def test(self):
        complaints = rule(read_tree())
        if complaints:
            self.fail("\n" + "\n".join(complaints[:100]) + (f"\n... {len(complaints) - 100} more" if len(complaints) > 100 else ""))
    return test


for rule_name, rule_function in RULES.items():
    setattr(HouseRules, f"test_{rule_name}", check(rule_function))


class Rules(unittest.TestCase):
    """Each rule refuses a bad sample, and leaves a good one alone."""

    def refuses(self, rule, path, text, **others):
        self.assertTrue(RULES[rule]({path: text, **others}), f"{rule} did not refuse {path}: {text!r}")

    def allows(self, rule, path, text, **others):
        self.assertEqual([], RULES[rule]({path: text, **others}))

    def test_layers(self):
        self.refuses("layers", "common/x.h", '#include "namenode/namespace/apply.h"\n')
        self.refuses("layers", "namenode/x.cc", '#include "datanode/storage/block_store.h"\n')
        self.refuses("layers", "datanode/x.cc", '#include "cairn/file_system.h"\n')
        self.refuses("layers", "client/src/x.cc", '#include "tests/testing/sim_disk.h"\n')
        self.allows("layers", "datanode/x.cc", '#include "cairn/types.pb.h"\n#include "common/ids.h"\n')
        self.allows("layers", "common/x.h", '// #include "namenode/a.h"\n')
        self.allows("layers", "tests/sim/x.cc", '#include "namenode/a.h"\n#include "cairn/file_system.h"\n')

    def test_rims(self):
        self.refuses("rims", "namenode/namenode.cc", "#include <grpcpp/grpcpp.h>\n")
        self.allows("rims", "common/rpc/server.cc", "#include <grpcpp/grpcpp.h>\n")
        self.refuses("rims", "namenode/namespace/apply.cc", '#include "rocksdb/db.h"\n')
        self.allows("rims", "namenode/store/meta_store.cc", "#include <rocksdb/db.h>\n")
        self.refuses("rims", "datanode/storage/volume.cc", "#include <unistd.h>\n")
        self.refuses("rims", "datanode/storage/volume.cc", "#include <sys/stat.h>\n")
        self.allows("rims", "common/env/real_files.cc", "#include <sys/stat.h>\n")
        self.refuses("rims", "client/src/x.cc", "#include <fstream>\n")
        self.refuses("rims", "datanode/x.cc", "#include <thread>\n")
        self.refuses("rims", "datanode/x.cc", "#include <mutex>\n")
        self.refuses("rims", "datanode/transfer/x.cc", "#include <boost/asio.hpp>\n")
        self.refuses("rims", "datanode/transfer/x.cc", "#include <boost/asio/co_spawn.hpp>\n")
        self.refuses("rims", "common/env/wait.h", "#include <boost/asio/co_spawn.hpp>\n")
        self.allows("rims", "common/env/wait.cc", "#include <boost/asio/co_spawn.hpp>\n")
        self.allows("rims", "datanode/transfer/x.h", "#include <boost/asio/awaitable.hpp>\n")

    def test_world(self):
        for bad in ("auto t = std::chrono::steady_clock::now();", "absl::Now();", "std::this_thread::sleep_for(x);", "sleep(1);",
                    "std::thread t(f);", "std::random_device d;", "int x = rand();", "time(nullptr);"):
            self.refuses("world", "namenode/x.cc", bad)
        for good in ("clock.Now();", "// absl::Now()", 'Log("sleep(1)");', "SleepUntil(executor, when);", "x.time(0);"):
            self.allows("world", "namenode/x.cc", good)
        self.allows("world", "common/env/real_clock.cc", "auto t = std::chrono::steady_clock::now();")
        self.refuses("world", "tests/namenode/x_test.cc", "absl::SleepFor(absl::Seconds(1));")

    def test_repeatable(self):
        self.refuses("repeatable", "tests/sim/x.cc", "std::shuffle(a.begin(), a.end(), g);")
        self.refuses("repeatable", "common/env/random.cc", "std::uniform_int_distribution<int> d;")
        self.allows("repeatable", "common/env/random.cc", "random.Shuffle(a);")

    def test_detached(self):
        self.refuses("detached", "common/env/x.cc", "co_spawn(e, Run(), asio::detached);")
        self.refuses("detached", "common/env/x.cc", "co_spawn(e, Run(), detached);")
        self.allows("detached", "namenode/x.cc", "Free(work, detached);  // of the detached\n")

    def test_types(self):
        self.refuses("types", "common/x.h", "void F(absl::string_view s);")
        self.refuses("types", "common/x.h", "std::lock_guard<std::mutex> lock(mu);")
        self.refuses("types", "common/x.cc", "throw std::runtime_error(s);")
        self.allows("types", "common/x.h", "void F(std::string_view s) { MutexLock lock(mu_); }")

    def test_co_await(self):
        for bad in ("co_await Send(Packet{buffer, 1});", "auto x = co_await Run([this] { return 1; });",
                    "const bool ok = co_await F(a, [=]() { return b; });", "if (co_await F(P{1})) {}", "co_await F(\n    {1, 2});"):
            self.refuses("co_await", "datanode/x.cc", bad)
        for good in ("co_await Send(std::move(packet));", "if (co_await Done()) {\n}", "co_await F(parts[1], a[i]);",
                     "while (!(co_await queue.Pop(d))) { x(); }", "co_await F([](int) { return 1; }(2));"[:0], "// co_await F({1});\n"):
            self.allows("co_await", "datanode/x.cc", good)

    def test_guarded(self):
        head = "class A {\n public:\n  void F() { int x; }\n private:\n  mutable Mutex mu_;\n"
        for bad in ("  int n_ = 0;\n", "  std::map<int, std::pair<int, int>> m_;  // By number.\n", "  absl::AnyInvocable<void()> wake_;\n",
                    "  const Clock* clock_;\n", "  bool stop_{false};\n"):
            self.refuses("guarded", "common/a.h", head + bad + "};\n")
        for good in ("  int n_ ABSL_GUARDED_BY(mu_) = 0;\n", "  const int n_ = 0;\n", "  const Clock* const clock_;\n", "  Env& env_;\n",
                     "  std::atomic<int> n_{0};\n", "  CondVar cv_;\n", "  int n_ = 0;  // The lane's thread only.\n",
                     "  // Owned by the writer's executor.\n  int n_ = 0;\n  int m_ = 0;\n", "  void G() ABSL_LOCKS_EXCLUDED(mu_);\n",
                     "  static constexpr int kMax = 3;\n", "  std::function<void(int)> f_ ABSL_GUARDED_BY(mu_);\n", "  struct B {\n    int x = 0;\n  };\n"):
            self.allows("guarded", "common/a.h", head + good + "};\n")
        self.allows("guarded", "common/a.h", "class A {\n  int n_ = 0;\n};\n")

    def test_words(self):
        for bad in ("// TODO: later\n", "# see /work/x\n", "as issue 2 asks\n"):
            self.refuses("words", "docs/x.md", bad)
        for good in ("Mutex mu; mktemp -t x.XXXXXX\n", "the session of a client, its user agent\n", "issues a call\n"):
            self.allows("words", "docs/x.md", good)

    def test_sizes(self):
        self.refuses("sizes", "common/x.cc", "x" * 141 + "\n")
        self.refuses("sizes", "common/x.cc", "x\n" * 601)
        self.allows("sizes", "common/x.cc", "x" * 140 + "\n")

    def test_pragma_once(self):
        self.refuses("pragma_once", "common/x.h", "#ifndef X\n")
        self.allows("pragma_once", "common/x.h", "#pragma once\n")

    def test_fault_points(self):
        source = 'RETURN_IF_ERROR(FaultPoint("store.before_sync"));'
        self.refuses("fault_points", "datanode/x.cc", source)
        self.refuses("fault_points", "datanode/x.cc", source, **{"tests/datanode/x_test.cc": 'Arm("store.before_sync_2")'})
        self.allows("fault_points", "datanode/x.cc", source, **{"tests/datanode/x_test.cc": 'Arm("store.before_sync")'})

    def test_built(self):
        self.refuses("built", "common/x.cc", "", **{"common/CMakeLists.txt": "SOURCES\n  xx.cc\n"})
        self.allows("built", "common/x.cc", "", **{"common/CMakeLists.txt": "SOURCES\n  x.cc\n"})
        self.allows("built", "namenode/store/x.cc", "", **{"namenode/CMakeLists.txt": "SOURCES store/x.cc)\n"})

    def test_every_rule_has_a_self_test(self):
        for name in RULES:
            self.assertTrue(hasattr(Rules, f"test_{name}"), f"rule {name} has no self-test")


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
