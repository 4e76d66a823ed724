//! Compiles the service again when a file of the panel or a page of the documentation is added or removed. The panel is
//! built by hand and committed, so this needs no Node. Tells the program the platform that it is built for.

fn main() {
    println!("cargo::rerun-if-changed=panel/dist");
    println!("cargo::rerun-if-changed=docs");
    println!("cargo::rustc-env=BUILD_TARGET={}", std::env::var_os("TARGET").unwrap_or_default().display());
}
