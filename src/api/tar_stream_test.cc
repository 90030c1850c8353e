#include "api/tar_stream.h"

#include <gtest/gtest.h>

#include <functional>

namespace caisson::api {
namespace {

// A header block whose fields can be anything; the checksum is made to fit.
struct Raw {
  std::string name = "file";
  char type = '0';
  std::string size = "00000000000";
  std::string mode = "0000644";
  std::string target, prefix;
  std::string magic = std::string("ustar\00000", 8);
};
std::string Sealed(std::string block) {
  block.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  char digits[8];
  snprintf(digits, sizeof digits, "%06o", sum);
  block.replace(148, 7, std::string(digits, 7));
  return block;
}
std::string Block(const Raw& raw) {
  std::string block(512, '\0');
  block.replace(0, raw.name.size(), raw.name);
  block.replace(100, raw.mode.size(), raw.mode);
  block.replace(124, raw.size.size(), raw.size);
  block[156] = raw.type;
  block.replace(157, raw.target.size(), raw.target);
  block.replace(257, raw.magic.size(), raw.magic);
  block.replace(345, raw.prefix.size(), raw.prefix);
  return Sealed(block);
}
std::string Octal(size_t value) {
  char digits[16];
  snprintf(digits, sizeof digits, "%011zo", value);
  return digits;
}
std::string Extended(char type, const std::string& content) {
  return Block({.name = "x", .type = type, .size = Octal(content.size())}) + content +
         TarPadding(content.size());
}
std::string File(const std::string& name, const std::string& content) {
  return Block({.name = name, .size = Octal(content.size())}) + content +
         TarPadding(content.size());
}
std::string Symlink(const std::string& name, const std::string& target) {
  return Block({.name = name, .type = '2', .target = target});
}
std::string HardLink(const std::string& name, const std::string& target) {
  return Block({.name = name, .type = '1', .target = target});
}

struct Unpacked {
  TarEntry entry;
  std::string content;
};
// Everything in `archive`, fed in pieces of `piece` bytes.
Result<std::vector<Unpacked>> Unpack(std::string_view archive, TarLimits limits = {},
                                     size_t piece = 65536) {
  TarReader reader(limits);
  std::vector<Unpacked> all;
  for (;;) {
    CAISSON_ASSIGN(auto item, reader.Next());
    if (auto* entry = std::get_if<TarEntry>(&item)) {
      all.push_back({std::move(*entry), ""});
    } else if (auto* bytes = std::get_if<TarReader::Bytes>(&item)) {
      all.back().content += bytes->data;
    } else {
      if (archive.empty()) break;
      reader.Feed(archive.substr(0, piece));
      archive.remove_prefix(std::min(piece, archive.size()));
    }
  }
  CAISSON_TRY(reader.Finish());
  return all;
}

std::string Packed() {
  std::string archive;
  const std::string long_name = std::string(200, 'd') + "/" + std::string(120, 'f');
  archive += TarHeader({.path = "", .kind = TarKind::kDirectory, .permissions = 0755}, {});
  archive += TarHeader({.path = "a", .kind = TarKind::kDirectory, .permissions = 0700}, {});
  archive += TarHeader({.path = "a/b", .permissions = 0640, .size = 5}, {.uid = 7, .mtime = 9});
  archive += "hello" + TarPadding(5);
  archive += TarHeader({.path = "a/empty"}, {});
  archive += TarHeader({.path = long_name, .size = 512}, {});
  archive += std::string(512, 'z');
  archive +=
      TarHeader({.path = "l", .kind = TarKind::kSymlink, .target = std::string(300, 't')}, {});
  archive += TarHeader({.path = "h", .kind = TarKind::kHardLink, .target = "a/b"}, {});
  return archive + TarEnd();
}

TEST(TarStream, ReadsBackWhatItWroteInPiecesOfAnySize) {
  for (const size_t piece : {1, 7, 511, 512, 513, 100'000}) {
    const auto all = Unpack(Packed(), {}, piece);
    ASSERT_TRUE(all) << all.error().message();
    ASSERT_EQ(all->size(), 7u);
    EXPECT_EQ((*all)[0].entry.path, "");
    EXPECT_EQ((*all)[1].entry.permissions, 0700u);
    EXPECT_EQ((*all)[2].entry.path, "a/b");
    EXPECT_EQ((*all)[2].entry.permissions, 0640u);
    EXPECT_EQ((*all)[2].content, "hello");
    EXPECT_EQ((*all)[3].content, "");
    EXPECT_EQ((*all)[4].entry.path.size(), 321u);
    EXPECT_EQ((*all)[4].content, std::string(512, 'z'));
    EXPECT_EQ((*all)[5].entry.target, std::string(300, 't'));
    EXPECT_EQ((*all)[6].entry.kind, TarKind::kHardLink);
    EXPECT_EQ((*all)[6].entry.target, "a/b");
  }
}

TEST(TarStream, ReadsWhatOtherToolsWrite) {
  struct Case {
    const char* what;
    std::string archive;
    std::string path;
    std::string content;
  };
  const Case cases[] = {
      {"a prefix", Block({.name = "f", .prefix = "some/dir"}), "some/dir/f", ""},
      {"GNU's magic has no prefix",
       Block({.name = "f", .prefix = "12345", .magic = std::string("ustar  \0", 8)}), "f", ""},
      {"before ustar", Block({.name = "d/f", .type = '\0', .magic = ""}), "d/f", ""},
      {"leading ./", File("./x/./y", "1"), "x/y", "1"},
      {"GNU long name", Extended('L', std::string(150, 'n') + '\0') + File("short", "2"),
       std::string(150, 'n'), "2"},
      {"a global comment", Extended('g', "19 comment=abcdefg\n") + File("f", "3"), "f", "3"},
      {"times and attributes are passed over",
       Extended('x', "21 mtime=1.500000000\n25 SCHILY.xattr.user.a=b\n") + File("f", "4"), "f",
       "4"},
      {"size of pax goes before the header's",
       Extended('x', "9 size=3\n") + Block({.name = "f"}) + "abc" + TarPadding(3), "f", "abc"},
      {"a size in base 256",
       Block({.name = "f", .size = std::string("\x80\0\0\0\0\0\0\0\0\0\0\x02", 12)}) + "hi" +
           TarPadding(2),
       "f", "hi"},
      {"blanks around numbers",
       Block({.name = "f", .size = "         2 ", .mode = "   644 "}) + "hi" + TarPadding(2), "f",
       "hi"},
  };
  for (const Case& c : cases) {
    const auto all = Unpack(c.archive + TarEnd());
    ASSERT_TRUE(all) << c.what << ": " << all.error().message();
    ASSERT_EQ(all->size(), 1u) << c.what;
    EXPECT_EQ(all->front().entry.path, c.path) << c.what;
    EXPECT_EQ(all->front().content, c.content) << c.what;
  }
}

TEST(TarStream, RefusesHostileArchives) {
  struct Case {
    const char* what;
    std::string archive;
    ErrorCode code = ErrorCode::kInvalidArgument;
  };
  std::string damaged = File("f", "x");
  damaged[0] = 'g';
  const Case cases[] = {
      {"absolute", File("/etc/passwd", "x")},
      {"parent", File("../x", "x")},
      {"parent in the middle", File("a/../../x", "x")},
      {"parent at the end", Block({.name = "a/..", .type = '5'})},
      {"parent by prefix", Block({.name = "x", .prefix = ".."})},
      {"absolute by pax", Extended('x', "11 path=/x\n") + File("f", "x")},
      {"parent by pax", Extended('x', "13 path=../x\n") + File("f", "x")},
      {"NUL by pax", Extended('x', std::string("12 path=a\0b\n", 12)) + File("f", "x")},
      {"parent by GNU name", Extended('L', std::string("../x\0", 5)) + File("f", "x")},
      {"no name", Block({.name = ""})},
      {"a component too long", Extended('L', std::string(256, 'c')) + File("f", "x")},
      {"a name too long", Extended('L',
                                   [] {
                                     std::string name;
                                     while (name.size() <= 4096) name += "dir/";
                                     return name;
                                   }()) +
                              File("f", "x")},
      {"the root as a file", Block({.name = "."})},
      {"the root as a link", Symlink("./.", "/etc")},
      {"a character device", Block({.name = "d", .type = '3'})},
      {"a block device", Block({.name = "d", .type = '4'})},
      {"a FIFO", Block({.name = "p", .type = '6'})},
      {"an unknown type", Block({.name = "f", .type = 'Z'})},
      {"multi-volume", Block({.name = "f", .type = 'M'})},
      {"GNU sparse", Block({.name = "f", .type = 'S'})},
      {"pax sparse", Extended('x', "22 GNU.sparse.major=1\n") + File("f", "x")},
      {"a link without target", Symlink("l", "")},
      {"below a link", Symlink("l", "/etc") + File("l/passwd", "x")},
      {"deep below a link", Symlink("l", "/") + File("l/etc/passwd", "x")},
      {"below a file", File("f", "x") + File("f/g", "x")},
      {"below what became a link",
       Block({.name = "d/", .type = '5'}) + Symlink("d", "/etc") + File("d/passwd", "x")},
      {"a hard link to the outside", HardLink("h", "/etc/shadow")},
      {"a hard link to a parent", HardLink("h", "../../etc/shadow")},
      {"a hard link to nothing", HardLink("h", "later") + File("later", "x")},
      {"a hard link to a symbolic link", Symlink("l", "/etc/shadow") + HardLink("h", "l")},
      {"a hard link to a directory", Block({.name = "d", .type = '5'}) + HardLink("h", "d")},
      {"a link with content", Block({.name = "l", .type = '2', .size = Octal(512), .target = "t"}) +
                                  std::string(512, 'x')},
      {"a directory with content",
       Block({.name = "d", .type = '5', .size = Octal(512)}) + std::string(512, 'x')},
      {"a negative size", Block({.name = "f", .size = std::string(12, '\xff')})},
      {"a huge size", Block({.name = "f", .size = "\x80" + std::string(11, '\xff')})},
      {"a size that is no number", Block({.name = "f", .size = "12x45"})},
      {"a sign in a number", Block({.name = "f", .size = "-1"})},
      {"a negative size by pax", Extended('x', "11 size=-1\n") + File("f", "x")},
      {"a huge size by pax", Extended('x', "32 size=99999999999999999999999\n") + File("f", "x")},
      {"global path", Extended('g', "10 path=x\n") + File("f", "x")},
      {"global size", Extended('g', "9 size=3\n") + File("f", "x")},
      {"pax length too long", Extended('x', "99 path=x\n") + File("f", "x")},
      {"pax length too short", Extended('x', "3 path=x\n") + File("f", "x")},
      {"pax length zero", Extended('x', "0 path=x\n") + File("f", "x")},
      {"pax length overflows",
       Extended('x', "99999999999999999999999999 path=x\n") + File("f", "x")},
      {"pax without a key", Extended('x', "5 =x\n") + File("f", "x")},
      {"pax without a length", Extended('x', "path=x\n") + File("f", "x")},
      {"an empty extended header", Extended('x', "") + File("f", "x")},
      {"a large extended header", Extended('x', std::string(65537, 'x')) + File("f", "x")},
      {"nothing after an extended header", Extended('x', "10 path=x\n")},
      {"a wrong checksum", damaged},
      {"no archive", std::string(1024, 'x')},
      {"an archive after the end", TarEnd() + File("f", "x")},
  };
  for (const Case& c : cases) {
    const auto all = Unpack(c.archive + TarEnd());
    ASSERT_FALSE(all) << c.what;
    EXPECT_EQ(all.error().code(), c.code) << c.what << ": " << all.error().message();
    EXPECT_FALSE(all.error().remedy().empty()) << c.what;
  }
}

TEST(TarStream, NoticesThatAnArchiveIsCutOff) {
  const std::string whole = Packed();
  const size_t end = whole.size() - 1024;
  for (size_t size = 0; size <= end; size += 128)
    EXPECT_FALSE(Unpack(std::string_view(whole).substr(0, size))) << size;
  EXPECT_TRUE(Unpack(whole));
}

TEST(TarStream, HoldsToItsLimits) {
  const std::string three = File("a", "123") + File("b", "456") + HardLink("c", "a") + TarEnd();
  EXPECT_TRUE(Unpack(three, {.entries = 3, .bytes = 9, .name_bytes = 3}));
  for (const TarLimits& limits :
       {TarLimits{.entries = 2}, TarLimits{.bytes = 8}, TarLimits{.name_bytes = 2}}) {
    const auto all = Unpack(three, limits);
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().code(), ErrorCode::kTooLarge);
  }
  std::string headers;
  for (int i = 0; i < 10; ++i) headers += Extended('g', "10 a=bcde\n");
  EXPECT_FALSE(Unpack(headers + TarEnd(), {.entries = 3}));
}

TEST(TarStream, PassesOverDevicesWhenAskedTo) {
  const auto all = Unpack(Block({.name = "d", .type = '3'}) + Block({.name = "p", .type = '6'}) +
                              File("f", "x") + TarEnd(),
                          {.specials = TarSpecials::kSkip});
  ASSERT_TRUE(all) << all.error().message();
  ASSERT_EQ(all->size(), 1u);
  EXPECT_EQ(all->front().entry.path, "f");
}

TEST(TarStream, DropsSetIdBits) {
  const auto all = Unpack(Block({.name = "f", .mode = "0007755"}) + TarEnd());
  ASSERT_TRUE(all);
  EXPECT_EQ(all->front().entry.permissions, 0755u);
}

TEST(TarStream, WritesSizesBeyondOctal) {
  const std::string header = TarHeader({.path = "big", .size = uint64_t{1} << 40}, {});
  TarReader reader({.bytes = uint64_t{1} << 41});
  reader.Feed(header);
  auto item = reader.Next();
  ASSERT_TRUE(item);
  EXPECT_EQ(std::get<TarEntry>(*item).size, uint64_t{1} << 40);
}

}  // namespace
}  // namespace caisson::api
