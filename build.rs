//! Compiles the service again when a file of the panel is added or removed. The panel is built by hand and committed, so
//! this needs no Node.

fn main() {
    println!("cargo::rerun-if-changed=panel/dist");
}
