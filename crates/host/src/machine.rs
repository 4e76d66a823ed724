//! The machine's description and load, from /proc if available; unknown values are omitted.

use std::{fs, path::Path};

use muster_protocol::{frame::Load, join::Machine};

/// The machine with the host's folder.
pub fn describe(id: &str, folder: &Path) -> Machine {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    Machine {
        id: id.to_owned(),
        hostname: rustix::system::uname().nodename().to_string_lossy().replace(char::is_control, ""),
        os: std::env::consts::OS.to_owned(),
        arch: std::env::consts::ARCH.to_owned(),
        cpu_cores: i64::try_from(cores).unwrap_or(0),
        memory_mb: memory_mb().unwrap_or(0),
        disk_mb: disk(folder).map_or(0, |(total, _)| total),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

pub fn memory_mb() -> Option<i64> {
    memory().map(|(total, _)| total / 1024)
}

/// Size of the disk, and free space for the host's user, in MiB.
pub fn disk(folder: &Path) -> Option<(i64, i64)> {
    let found = rustix::fs::statvfs(folder).ok()?;
    let mib = |blocks: u64| i64::try_from((u128::from(blocks) * u128::from(found.f_frsize)) >> 20).ok();
    Some((mib(found.f_blocks)?, mib(found.f_bavail)?))
}

/// Total and available memory, in KiB.
fn memory() -> Option<(i64, i64)> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<i64>().ok()
    };
    Some((value("MemTotal")?, value("MemAvailable")?))
}

/// Measures the load. Processor load is relative to the previous measurement.
#[derive(Debug, Default)]
pub struct Meter {
    before: Option<(u64, u64)>,
}

impl Meter {
    pub fn load(&mut self) -> Load {
        let now = ticks();
        let cpu_pct = self.before.zip(now).and_then(|((busy, all), (busy_now, all_now))| {
            let all = all_now.checked_sub(all).filter(|all| *all > 0)?;
            Some(busy_now.saturating_sub(busy) as f64 * 100.0 / all as f64)
        });
        self.before = now.or(self.before);
        let percent =
            |(total, available): (i64, i64)| (total - available) as f64 * 100.0 / total.max(1) as f64;
        Load { cpu_pct, ram_pct: memory().map(percent), load: averages(), uptime_seconds: uptime() }
    }
}

/// Busy and total ticks of the processors since boot.
fn ticks() -> Option<(u64, u64)> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let numbers = text.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace().take(8);
    let numbers: Vec<u64> = numbers.map_while(|number| number.parse().ok()).collect();
    let idle = numbers.get(3)? + numbers.get(4)?;
    let all: u64 = numbers.iter().sum();
    Some((all - idle, all))
}

fn averages() -> Option<[f64; 3]> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    let mut numbers = text.split_ascii_whitespace().map_while(|number| number.parse().ok());
    Some([numbers.next()?, numbers.next()?, numbers.next()?])
}

fn uptime() -> Option<i64> {
    let text = fs::read_to_string("/proc/uptime").ok()?;
    text.split(['.', ' ']).next()?.parse().ok()
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_measured() {
        let machine = describe("m", Path::new("/"));
        assert!(machine.cpu_cores > 0 && machine.memory_mb > 0 && machine.disk_mb > 0, "{machine:?}");
        let mut meter = Meter { before: Some((0, 0)) };
        let load = meter.load();
        assert!(load.cpu_pct.is_some_and(|used| (0.0..=100.0).contains(&used)), "{load:?}");
        assert!(load.ram_pct.is_some_and(|used| (0.0..=100.0).contains(&used)), "{load:?}");
        assert!(load.load.is_some() && load.uptime_seconds.is_some(), "{load:?}");
    }
}
