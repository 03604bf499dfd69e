// What the playground asks (src/web), natively: the same function as in the module, with both back ends.
#include "web/web.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace ein::web {
namespace {

using Json = nlohmann::json;

class Web : public ::testing::TestWithParam<Backend> {
 protected:
  Json ask(const Json& request) { return Json::parse(session_.answer(request.dump())); }
  Json ask(const char* verb, const std::string& source, Json more = Json::object()) {
    more["verb"] = verb;
    more["source"] = source;
    return ask(more);
  }
  Session session_{{.backend = GetParam(), .version = "1.2.3"}};
};

INSTANTIATE_TEST_SUITE_P(Backends, Web, ::testing::Values(Backend::Reference, Backend::Native),
                         [](const auto& i) {
                           return i.param == Backend::Native ? "native" : "ref";
                         });

const char* const kLayer = R"(let x[n, i] = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]];
let W[o, i] = [[1.0, 0.5], [0.25, 2.0]];
let y[n, o] = sum[i](x[n, i] * W[o, i]);
let loss = sum[n, o](y[n, o] ** 2.0);
let dW = @loss / @W;
print("loss {loss}");
)";

const Json& named(const Json& list, const std::string& name) {
  for (const Json& one : list) {
    if (one["name"] == name) return one;
  }
  static const Json none;
  ADD_FAILURE() << "there is no " << name;
  return none;
}

TEST_P(Web, RunsAndShowsValues) {
  Json a = ask("run", kLayer, {{"values", true}});
  EXPECT_EQ(a["status"], 0);
  EXPECT_EQ(a["stdout"], "loss 363.1875\n");
  EXPECT_EQ(a["stderr"], "");
  const Json& y = named(a["values"], "y");
  EXPECT_EQ(y["coords"], Json({"n", "o"}));
  EXPECT_EQ(y["shape"], Json({3, 2}));
  EXPECT_EQ(y["cells"].size(), 6U);
  EXPECT_EQ(y["cells"][0], 2.0);
  // A derivative that nothing prints is shown, too.
  EXPECT_EQ(named(a["values"], "dW")["shape"], Json({2, 2}));
  EXPECT_EQ(ask("run", kLayer).count("values"), 0U);
}

TEST_P(Web, ValuesThatCannotBeComputedStopNothing) {
  Json a = ask(
      "run", "let at[k] = [0, 8];\nlet a[i] = [1.0, 2.0];\nlet far[k] = a[at[k]];\nprint(a[0]);\n",
      {{"values", true}});
  EXPECT_EQ(a["status"], 0) << a.dump(1);
  EXPECT_EQ(a["stdout"], "1.0\n");
  EXPECT_EQ(named(a["values"], "a")["shape"], Json({2}));
  for (const Json& v : a["values"]) EXPECT_NE(v["name"], "far");
}

TEST_P(Web, MistakesHavePlacesAndFixes) {
  // Places count units of UTF-16: the sign before the mistake is one of two.
  Json a = ask("check", "let total = 1.0; // 𝛁\nprint(totl);\n");
  EXPECT_EQ(a["status"], 1);
  ASSERT_EQ(a["diagnostics"].size(), 1U);
  const Json& d = a["diagnostics"][0];
  EXPECT_EQ(d["code"], "E0201");
  EXPECT_EQ(d["severity"], "error");
  EXPECT_EQ(d["labels"][0]["at"], Json({29, 33}));
  EXPECT_EQ(d["fixes"][0]["edits"][0]["text"], "total");
  EXPECT_NE(a["stderr"].get<std::string>().find("error[E0201]"), std::string::npos);
}

TEST_P(Web, FailuresOfARunHavePlaces) {
  Json a =
      ask("run", "let a[i] = [1.0, 2.0];\nlet k = 5;\nassert(a[0] > k as f32, \"too small\");\n");
  EXPECT_EQ(a["status"], 3);
  EXPECT_EQ(a["diagnostics"][0]["code"], "E0804");
  EXPECT_TRUE(a["diagnostics"][0]["labels"][0]["at"].is_array());
}

TEST_P(Web, DerivativesAreTiedToTheSource) {
  Json a = ask("grad", kLayer);
  EXPECT_EQ(a["status"], 0);
  EXPECT_EQ(a["asked"], true);
  const Json& line = named(a["lines"], "dW");
  std::string source = kLayer;
  ASSERT_FALSE(line["from"].empty());
  size_t from = line["from"][0][0], to = line["from"][0][1];
  EXPECT_NE(source.substr(from, to - from), "");
  EXPECT_NE(a["stdout"].get<std::string>().find("sum[n"), std::string::npos);
  // Asked for by names, and not at all.
  Json by_names = ask("grad", "let x = 2.0;\nlet y = x ** 3.0;\n", {{"of", "y"}, {"wrt", {"x"}}});
  EXPECT_NE(by_names["stdout"].get<std::string>().find("d_y_d_x"), std::string::npos);
  Json none = ask("grad", "let x = 2.0;\nlet y = x ** 3.0;\n");
  EXPECT_EQ(none["asked"], false);
  EXPECT_EQ(none["values"].size(), 2U);
  EXPECT_EQ(ask("grad", kLayer, {{"of", "loss"}})["status"], 2);
}

TEST_P(Web, ExplanationsSayWhatIsSummedAndWhy) {
  Json a = ask("explain", kLayer);
  ASSERT_EQ(a["explanations"].size(), 1U);
  const Json& e = a["explanations"][0];
  EXPECT_EQ(e["of"], "loss");
  EXPECT_EQ(e["wrt"], "W");
  const Json& last = e["steps"].back();
  EXPECT_EQ(last["summed"], Json({"n"}));
  EXPECT_EQ(last["why"], "n: y has it, W does not");
  std::string source = kLayer;
  EXPECT_EQ(source.substr(last["at"][0], last["at"][1].get<size_t>() - last["at"][0].get<size_t>()),
            "W[o, i]");
}

TEST_P(Web, ReportsAndFormat) {
  EXPECT_NE(ask("audit", kLayer)["stdout"].get<std::string>().find("repeated along"),
            std::string::npos);
  Json facts = ask("facts", kLayer);
  EXPECT_EQ(named(facts["facts"]["families"], "W")["coords"].size(), 2U);
  EXPECT_EQ(ask("format", "let   x=1;")["stdout"], "let x = 1;\n");
  EXPECT_EQ(ask("format", "let = ;")["status"], 1);
}

TEST_P(Web, InputsAreMadeUpWhereThatIsWanted) {
  const char* source = "let x: [f32; n];\nlet s = sum[i](x[i] ** 2.0);\nprint(s > 0.0);\n";
  Json missing = ask("run", source);
  EXPECT_EQ(missing["status"], 3);
  EXPECT_EQ(missing["diagnostics"][0]["code"], "E0801");
  Json made = ask("run", source, {{"make_up_inputs", true}});
  EXPECT_EQ(made["status"], 0) << made.dump(1);
  EXPECT_EQ(made["stdout"], "true\n");
  EXPECT_EQ(made["made_up"], Json({"x"}));
}

TEST_P(Web, FilesStayInTheAnswer) {
  Json written = ask("run", "save(\"x.txt\", \"{1 + 1}\");\n");
  EXPECT_EQ(written["status"], 0) << written.dump(1);
  EXPECT_EQ(written["files"], Json::array({Json{{"name", "x.txt"}, {"text", "2"}}}));
  EXPECT_FALSE(std::filesystem::exists("x.txt"));
  Json saved = ask("run", "let a[i] = [1.0];\nsave(\"a.npy\", a);\n");
  EXPECT_EQ(saved["status"], 3);
  EXPECT_EQ(saved["diagnostics"][0]["code"], "E0811");
  EXPECT_FALSE(std::filesystem::exists("a.npy"));
  Json loaded = ask("run", "let a[i]: [f32; 3] = load(\"/etc/passwd\");\nprint(a);\n");
  EXPECT_EQ(loaded["status"], 1);
  EXPECT_NE(loaded["stderr"].get<std::string>().find("there are no files here"), std::string::npos);
}

TEST_P(Web, ModulesComeWithTheRequest) {
  Json files =
      Json::array({{{"name", "half.ein"}, {"text", "pub fn half(x: f32) -> f32 { 0.5 * x }\n"}}});
  const char* source = "use half::half;\nprint(half(3.0));\n";
  EXPECT_EQ(ask("run", source, {{"files", files}})["stdout"], "1.5\n");
  EXPECT_EQ(ask("run", source)["diagnostics"][0]["code"], "E0211");
}

TEST_P(Web, RequestsThatMakeNoSenseAreRefused) {
  for (const char* text : {"", "{", "[]", "null", "{}", "{\"verb\": 3}", "{\"verb\": \"dance\"}",
                           "{\"verb\": \"run\"}", "{\"verb\": \"run\", \"source\": 7}",
                           "{\"verb\": \"run\", \"source\": \"\", \"files\": 1}",
                           "{\"verb\": \"run\", \"source\": \"\", \"values\": \"yes\"}",
                           "{\"verb\": \"grad\", \"source\": \"\", \"wrt\": [1], \"of\": \"x\"}",
                           "{\"verb\": \"lsp\", \"messages\": \"\"}"}) {
    Json a = Json::parse(session_.answer(text));
    EXPECT_EQ(a["status"], 2) << text << ": " << a.dump();
    EXPECT_FALSE(a["error"].get<std::string>().empty()) << text;
  }
  // Bytes that are no text, and a program without an end.
  EXPECT_EQ(Json::parse(session_.answer("{\"verb\": \"run\", \"source\": \"\xff\"}"))["status"], 2);
  EXPECT_EQ(ask("check", std::string(2'000'000, ' '))["status"], 2);
}

TEST_P(Web, TheLanguageServerAnswers) {
  auto send = [&](const Json& messages) { return ask({{"verb", "lsp"}, {"messages", messages}}); };
  auto request = [](int id, const char* method, const Json& params) {
    return Json{{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}};
  };
  Json hello = send(Json::array({request(1, "initialize", {{"capabilities", Json::object()}})}));
  EXPECT_EQ(hello["messages"][0]["result"]["serverInfo"]["version"], "1.2.3");
  Json open{
      {"jsonrpc", "2.0"},
      {"method", "textDocument/didOpen"},
      {"params",
       {{"textDocument",
         {{"uri", "file:///p.ein"}, {"languageId", "ein"}, {"version", 1}, {"text", kLayer}}}}}};
  Json opened = send(Json::array({open}));
  EXPECT_EQ(opened["messages"][0]["method"], "textDocument/publishDiagnostics");
  EXPECT_GE(opened["due"].get<int>(), 0);
  Json hover = send(Json::array({request(2, "textDocument/hover",
                                         {{"textDocument", {{"uri", "file:///p.ein"}}},
                                          {"position", {{"line", 3}, {"character", 5}}}})}));
  EXPECT_NE(hover["messages"][0]["result"]["contents"]["value"].get<std::string>().find("loss"),
            std::string::npos);
  // No process is started, whoever asks.
  Json command = send(Json::array({request(
      3, "workspace/executeCommand", {{"command", "ein.run"}, {"arguments", {"file:///p.ein"}}})}));
  EXPECT_TRUE(command["messages"][0].contains("error"));
}

TEST_P(Web, ProgramsOfTheGalleryRun) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(EIN_SOURCE_DIR "/web/gallery")) {
    if (entry.path().extension() != ".ein") continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    Json a = ask("run", text.str(), {{"values", true}});
    EXPECT_EQ(a["status"], 0) << entry.path() << a["stderr"];
    EXPECT_FALSE(a["values"].empty());
    ++count;
  }
  EXPECT_GE(count, 4U);
}

}  // namespace
}  // namespace ein::web
