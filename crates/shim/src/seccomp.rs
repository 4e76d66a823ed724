//! System calls refused in a sandbox, as the BPF program for bubblewrap's `--seccomp`.
//!
//! A sandbox has no keyring of its own: its programs would share the keyring of the session that started the host, with
//! the owner's keys (`keyctl`). A program with a terminal could type the owner's next command (`TIOCSTI`).

use std::{
    io::{self, PipeReader, Write, pipe},
    iter::once,
};

/// System call numbers of one architecture.
struct Numbers {
    architecture: u32,
    /// `add_key`, `request_key` and `keyctl`.
    keys: [u32; 3],
    ioctl: u32,
}

/// Architectures that this kernel executes. All calls of any other architecture are refused.
#[cfg(target_arch = "x86_64")]
const ALL: &[Numbers] = &[
    Numbers { architecture: 0xc000_003e, keys: [248, 249, 250], ioctl: 16 },
    Numbers { architecture: 0x4000_0003, keys: [286, 287, 288], ioctl: 54 },
];
#[cfg(target_arch = "aarch64")]
const ALL: &[Numbers] = &[
    Numbers { architecture: 0xc000_00b7, keys: [217, 218, 219], ioctl: 29 },
    Numbers { architecture: 0x4000_0028, keys: [309, 310, 311], ioctl: 54 },
];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ALL: &[Numbers] = &[];

/// `TIOCSTI` and `TIOCLINUX`: both insert terminal input.
const INPUTS: [u32; 2] = [0x5412, 0x541c];

const ALLOW: u32 = 0x7fff_0000;
/// Returns EPERM.
const REFUSE: u32 = 0x0005_0001;

/// An instruction: its code, the jumps if true and if false, and its operand.
type Instruction = (u16, u8, u8, u32);

/// Offsets in a call: 0 number, 4 architecture, 24 second argument, of which `ioctl` uses the lower half.
const fn load(at: u32) -> Instruction {
    (0x20, 0, 0, at)
}

const fn is(number: u32, skipped_else: u8) -> Instruction {
    (0x15, 0, skipped_else, number)
}

const fn answer(what: u32) -> Instruction {
    (0x06, 0, 0, what)
}

fn refuse_if(number: u32) -> [Instruction; 2] {
    [is(number, 1), answer(REFUSE)]
}

/// The rules for one architecture.
fn rules(of: &Numbers) -> Vec<Instruction> {
    // Numbers from here on belong to x32, another ABI for the same calls.
    let mut all = vec![load(0), (0x35, 0, 1, 0x4000_0000), answer(REFUSE)];
    all.extend(of.keys.into_iter().flat_map(refuse_if));
    let inputs: Vec<Instruction> = once(load(24)).chain(INPUTS.into_iter().flat_map(refuse_if)).collect();
    all.push(is(of.ioctl, skipping(&inputs)));
    all.extend(inputs);
    all.push(answer(ALLOW));
    all
}

fn skipping(rules: &[Instruction]) -> u8 {
    u8::try_from(rules.len()).unwrap_or(u8::MAX)
}

fn program() -> Vec<u8> {
    let mut all = vec![load(4)];
    for numbers in ALL {
        let rules = rules(numbers);
        all.push(is(numbers.architecture, skipping(&rules)));
        all.extend(rules);
    }
    all.push(answer(if ALL.is_empty() { ALLOW } else { REFUSE }));
    let bytes = all.into_iter().flat_map(|(code, then, otherwise, number)| {
        let [first, second] = code.to_ne_bytes();
        [first, second, then, otherwise].into_iter().chain(number.to_ne_bytes())
    });
    bytes.collect()
}

/// The filter, as a pipe to read to its end.
pub(crate) fn filter() -> io::Result<PipeReader> {
    let (reader, mut writer) = pipe()?;
    // It is smaller than a pipe's buffer, so the write doesn't block.
    writer.write_all(&program())?;
    Ok(reader)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_fits_into_a_pipe() {
        assert!(program().len() < 4096 && program().len().is_multiple_of(8));
        assert!(ALL.iter().all(|numbers| rules(numbers).len() < usize::from(u8::MAX)));
    }
}
