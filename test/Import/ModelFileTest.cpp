// SPDX-License-Identifier: Apache-2.0
//
// Which file a path means, and which files a model may read.

#include "lib/Import/ModelFile.h"

#include "TestModel.h"
#include "gtest/gtest.h"

#include <sys/stat.h>

using namespace otf;
using namespace otf::test;
namespace fs = std::filesystem;

namespace {

std::string errorOf(const std::string &path) {
  llvm::Expected<std::unique_ptr<ModelFile>> file = ModelFile::open(path);
  return file ? "" : messageOf(file.takeError());
}

bool names(const std::string &message, const char *what) { return message.find(what) != std::string::npos; }

struct ModelFileTest : testing::Test {
  TemporaryFolder folder;
  std::string model = emptyModel().SerializeAsString();
};

TEST_F(ModelFileTest, FolderMeansModelOnnx) {
  folder.write("other.onnx", model);
  std::string path = folder.write("model.onnx", model);
  folder.write("config.json", "{}");
  auto file = llvm::cantFail(ModelFile::open(folder.path.string()));
  EXPECT_EQ(file->path(), path);
  EXPECT_EQ(file->folder(), folder.path.string());
  EXPECT_EQ(file->companions().config, (folder.path / "config.json").string());
  EXPECT_EQ(file->companions().tokenizer, "");
  EXPECT_EQ(file->files().name(0), "model.onnx");
}

TEST_F(ModelFileTest, FolderMeansItsOnlyModel) {
  std::string path = folder.write("decoder.onnx", model);
  EXPECT_EQ(llvm::cantFail(ModelFile::open(folder.path.string()))->path(), path);
  folder.write("encoder.onnx", model);
  EXPECT_TRUE(names(errorOf(folder.path.string()), "holds 2 models"));
}

TEST_F(ModelFileTest, FolderWithoutModelIsRefused) {
  EXPECT_TRUE(names(errorOf(folder.path.string()), "holds no model"));
}

TEST_F(ModelFileTest, OtherFilesAreRefused) {
  EXPECT_TRUE(names(errorOf((folder.path / "missing.onnx").string()), "cannot be opened"));
  EXPECT_TRUE(names(errorOf(folder.write("empty.onnx", "")), "is empty"));
  EXPECT_TRUE(names(errorOf(folder.write("lfs.onnx", "version https://git-lfs.github.com/spec/v1\n")), "git lfs pull"));
  EXPECT_TRUE(names(errorOf(folder.write("text.onnx", "Hello, world")), "not an ONNX model"));
  std::string pipe = (folder.path / "pipe.onnx").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(names(errorOf(pipe), "is not a regular file"));
}

struct FileSetTest : testing::Test {
  TemporaryFolder folder;
  fs::path inner = folder.path / "in";
  FileSet files = makeFiles();

  FileSet makeFiles() {
    fs::create_directories(inner / "sub");
    fs::create_directories(folder.path / "in_evil");
    folder.write("outside.bin", "secret");
    folder.write("in_evil/w.bin", "secret");
    folder.write("in/w.bin", "weights");
    return llvm::cantFail(FileSet::in(inner.string()));
  }
  std::string errorOf(const std::string &location) {
    llvm::Expected<unsigned> file = files.open(location);
    return file ? "" : messageOf(file.takeError());
  }
};

TEST_F(FileSetTest, FileIsMappedOnce) {
  unsigned number = llvm::cantFail(files.open("w.bin"));
  EXPECT_EQ(llvm::cantFail(files.open("sub/../w.bin")), number);
  EXPECT_EQ(files.size(), 1u);
  EXPECT_EQ(files.bytes(number).size(), 7u);
}

TEST_F(FileSetTest, PathsOutOfTheFolderAreRefused) {
  EXPECT_TRUE(names(errorOf("../outside.bin"), "outside"));
  EXPECT_TRUE(names(errorOf("sub/../../outside.bin"), "outside"));
  EXPECT_TRUE(names(errorOf("../in_evil/w.bin"), "outside"));
  EXPECT_TRUE(names(errorOf((inner / "w.bin").string()), "absolute"));
  EXPECT_TRUE(names(errorOf(""), "no location"));
  EXPECT_TRUE(names(errorOf(std::string("w.bin\0x", 7)), "zero byte"));
}

TEST_F(FileSetTest, SymlinkOutOfTheFolderIsRefused) {
  fs::create_symlink("../outside.bin", inner / "link.bin");
  fs::create_symlink("..", inner / "up");
  EXPECT_TRUE(names(errorOf("link.bin"), "symlink leads outside"));
  EXPECT_TRUE(names(errorOf("up/outside.bin"), "symlink leads outside"));
  EXPECT_TRUE(names(errorOf("up/in_evil/w.bin"), "symlink leads outside"));
}

TEST_F(FileSetTest, SymlinkInsideTheFolderIsFollowed) {
  fs::create_symlink("../w.bin", inner / "sub" / "link.bin");
  EXPECT_EQ(errorOf("sub/link.bin"), "");
}

TEST_F(FileSetTest, OnlyRegularFilesAreRead) {
  ASSERT_EQ(mkfifo((inner / "p.bin").c_str(), 0600), 0);
  EXPECT_TRUE(names(errorOf("p.bin"), "not a regular file"));
  EXPECT_TRUE(names(errorOf("sub"), "directory"));
  EXPECT_TRUE(names(errorOf("."), "directory"));
  EXPECT_TRUE(names(errorOf("missing.bin"), "cannot be found"));
}

TEST_F(FileSetTest, ReopenKeepsNumbers) {
  folder.write("in/v.bin", "more");
  FileSet again = llvm::cantFail(FileSet::reopen(inner.string(), {"w.bin", "v.bin"}));
  EXPECT_EQ(again.bytes(1).size(), 4u);
  EXPECT_TRUE(names(messageOf(FileSet::reopen(inner.string(), {"packed:W"}).takeError()), "import the model again"));
}

} // namespace
