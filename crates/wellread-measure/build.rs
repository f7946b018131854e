//! Records which compiler, target and profile built the measuring code, so that every result can name them.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = Command::new(rustc)
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned());
    println!("cargo:rustc-env=WELLREAD_BUILD_RUSTC={version}");
    for (name, source) in [
        ("WELLREAD_BUILD_TARGET", "TARGET"),
        ("WELLREAD_BUILD_PROFILE", "PROFILE"),
        ("WELLREAD_BUILD_OPT_LEVEL", "OPT_LEVEL"),
    ] {
        let value = std::env::var(source).unwrap_or_else(|_| "unknown".into());
        println!("cargo:rustc-env={name}={value}");
    }
}
