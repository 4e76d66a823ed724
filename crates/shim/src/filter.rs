//! System calls that a sandbox refuses, as the BPF program that bubblewrap takes with `--seccomp`.
//!
//! A sandbox has no keyring of its own: a program in it would have that of the session that started the host, with the keys of the
//! operator's (`keyctl`). And a program with a terminal could write its next command (`TIOCSTI`).

use std::{
    io::{self, PipeReader, Write, pipe},
    iter::once,
};

/// One architecture's numbers of system calls.
struct Numbers {
    architecture: u32,
    /// `add_key`, `request_key` and `keyctl`.
    keys: [u32; 3],
    ioctl: u32,
}

/// Those that a kernel of this architecture runs programs of. A program of another one is refused everything.
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

/// `TIOCSTI` and `TIOCLINUX`: both write what a terminal reads next.
const INPUTS: [u32; 2] = [0x5412, 0x541c];

const ALLOW: u32 = 0x7fff_0000;
/// With EPERM.
const REFUSE: u32 = 0x0005_0001;

/// An instruction: its code, how many to skip if it holds or doesn't, and its number.
type Instruction = (u16, u8, u8, u32);

/// Of a call: at 0 its number, at 4 its architecture, at 24 its second argument, of which `ioctl` looks at the lower half.
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

/// What to do with a call of this architecture.
fn rules(of: &Numbers) -> Vec<Instruction> {
    // From here on numbers are those of x32, another way to the same calls.
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

/// The filter, to be read to its end.
pub(crate) fn filter() -> io::Result<PipeReader> {
    let (reader, mut writer) = pipe()?;
    // It is smaller than a pipe, so nothing waits.
    writer.write_all(&program())?;
    Ok(reader)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_fits_where_it_is_kept() {
        assert!(program().len() < 4096 && program().len().is_multiple_of(8));
        assert!(ALL.iter().all(|numbers| rules(numbers).len() < usize::from(u8::MAX)));
    }
}
