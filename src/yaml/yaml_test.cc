#include "yaml/yaml.h"

#include <gtest/gtest.h>

namespace caisson::yaml {
namespace {

std::string Refusal(std::string_view text) {
  const auto node = Parse(text, "f.yaml");
  return node ? "accepted" : node.error().message();
}

TEST(Yaml, TreesRememberTheirLines) {
  const auto node = Parse(
      "# comment\n"
      "listen: 127.0.0.1:8000\n"
      "limits:\n"
      "  memory: \"2G\"\n"
      "  none: ~\n"
      "list:\n"
      "  - a\n"
      "  - {b: 1}\n",
      "f.yaml");
  ASSERT_TRUE(node) << node.error().message();
  ASSERT_TRUE(node->is_map());
  EXPECT_EQ(node->Find("listen")->text, "127.0.0.1:8000");
  const Node* limits = node->Find("limits");
  ASSERT_TRUE(limits != nullptr && limits->is_map());
  EXPECT_EQ(limits->Find("memory")->text, "2G");
  EXPECT_EQ(limits->Find("memory")->line, 4);
  EXPECT_EQ(limits->members[0].line, 4);
  EXPECT_TRUE(limits->Find("none")->is_null());
  const Node* list = node->Find("list");
  ASSERT_EQ(list->items.size(), 2u);
  EXPECT_EQ(list->items[1].Find("b")->text, "1");
  EXPECT_EQ(list->items[1].line, 8);
  EXPECT_EQ(node->Find("absent"), nullptr);
}

TEST(Yaml, NothingIsNull) {
  EXPECT_TRUE(Parse("", "f")->is_null());
  EXPECT_TRUE(Parse("# only a comment\n", "f")->is_null());
  EXPECT_TRUE(Parse("~", "f")->is_null());
  EXPECT_TRUE(Parse("\"~\"", "f")->is_scalar());
}

TEST(Yaml, RefusesWhatIsMoreThanItLooks) {
  EXPECT_EQ(Refusal("a: 1\nb: &x 2\n"), "f.yaml:2: anchors are not supported");
  EXPECT_EQ(Refusal("a: !!binary x\n"), "f.yaml:1: tags are not supported");
  EXPECT_EQ(Refusal("a: 1\nb: 2\na: 3\n"), "f.yaml:3: key \"a\" is given more than once");
  EXPECT_EQ(Refusal("a: 1\n---\nb: 2\n"), "f.yaml:3: a second document begins");
  EXPECT_EQ(Refusal("? [a, b]\n: 1\n"), "f.yaml:1: a key is no scalar");
  EXPECT_EQ(Refusal("a:\n  <<: b\n"), "f.yaml:2: merge keys are not supported");
  EXPECT_EQ(Refusal("a: \xff\n"), "f.yaml:1: the file is not UTF-8");
  EXPECT_EQ(Refusal(std::string(40, '[') + std::string(40, ']')), "f.yaml:1: nested too deep");
}

TEST(Yaml, SyntaxErrorsHaveALine) {
  EXPECT_TRUE(Refusal("a: 1\n  b: 2\n").starts_with("f.yaml:2: ")) << Refusal("a: 1\n  b: 2\n");
  EXPECT_TRUE(Refusal("a: [1, 2\nb: 3\n").starts_with("f.yaml:"));
  EXPECT_TRUE(Refusal("a: \"x\n").starts_with("f.yaml:"));
  EXPECT_TRUE(Refusal("\t- a\n").starts_with("f.yaml:1: "));
  EXPECT_TRUE(Refusal("*x\n").starts_with("f.yaml:1: "));
}

TEST(Yaml, AMissingFileSaysWhich) {
  const auto node = ParseFile("/nonexistent/caisson.yaml");
  ASSERT_FALSE(node);
  EXPECT_EQ(node.error().code(), ErrorCode::kIo);
  EXPECT_EQ(node.error().message(),
            "cannot open /nonexistent/caisson.yaml: No such file or directory");
}

}  // namespace
}  // namespace caisson::yaml
