# The command in the formats that need no engine, which build in minutes.
class Wellread < Formula
  desc "Load microscopy images into PyTorch, JAX or NumPy, and find the fastest format"
  homepage "https://github.com/wellread/wellread"
  url "https://github.com/wellread/wellread/archive/refs/tags/v0.1.0.tar.gz"
  # The sum of the released archive, which does not exist before the release: docs/releasing.md.
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license any_of: ["MIT", "Apache-2.0"]
  head "https://github.com/wellread/wellread.git", branch: "main"

  depends_on "python@3.13" => :build
  depends_on "rust" => :build

  def install
    system "cargo", "install", *std_cargo_args(path: "crates/wellread-cli")
    # The licences of all crates that the program can be compiled from.
    system "cargo", "fetch", "--locked"
    system "python3.13", "scripts/third_party.py", "--out", "THIRD-PARTY.txt"
    doc.install "THIRD-PARTY.txt"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/wellread --version")
    system bin/"wellread", "generate", "set", "--images", "4", "--size", "32x32", "--formats", "parquet,tiff"
    system bin/"wellread", "verify", "set/images.parquet", "--against", "set/tiff"
  end
end
