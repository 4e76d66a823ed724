//! A small pseudo-random generator (SplitMix64): the same seed gives the same numbers on every machine, forever. It
//! must not be used for secrets.

/// The generator.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// An independent generator for each list of `parts`.
    #[must_use]
    pub fn new(parts: &[u64]) -> Self {
        let mut random = Self(0x6d75_7374_6572);
        for part in parts {
            random.0 ^= part.wrapping_mul(0xff51_afd7_ed55_8ccd);
            random.number();
        }
        random
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        scramble(self.0)
    }

    /// A number below `bound` (0 for a bound of 0).
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.number()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `low` to `high`, inclusive.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1).max(1).cast_unsigned()).cast_signed()
    }

    /// True `percent` times in a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of `items`, which must not be empty.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }

    /// One of `items`, weighted.
    pub fn weighted<T: Copy>(&mut self, items: &[(u64, T)]) -> T {
        let mut at = self.below(items.iter().map(|(weight, _)| weight).sum());
        for (weight, item) in items {
            if at < *weight {
                return *item;
            }
            at -= weight;
        }
        items[0].1
    }
}

/// Mixes the bits of a number; different numbers stay different.
#[must_use]
pub const fn scramble(number: u64) -> u64 {
    let mut z = number;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn equal_seeds_give_equal_numbers() {
        let numbers = |parts: &[u64]| {
            let mut random = Random::new(parts);
            (0..50).map(|_| random.between(-5, 5)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(&[1, 2]), numbers(&[1, 2]));
        assert_ne!(numbers(&[1, 2]), numbers(&[2, 1]));
        assert!(numbers(&[7]).iter().all(|number| (-5..=5).contains(number)));
    }
}
