//! The stages of a search in PostgreSQL's index, from the newest messages on
//! (`docs/decisions/0015-search-from-the-end.md`).
//!
//! For each message the index stores which block of 2,048 and which block of 65,536 messages it belongs to, by its seq
//! in its conversation and by its id in its organization (the function `search_terms` in the migrations). A search asks
//! for the newest 4,096 to 6,144 messages, then for the 65,536 to 131,072 before them, then for all others, and stops
//! when it has enough hits: common words are found near the end, and rare words have few hits to read anywhere.

use std::ops::RangeInclusive;

/// The block sizes: the separator between token and block in a term, the number of low bits to drop from a position,
/// and the number of blocks in a stage.
const SIZES: [(&str, u32, i64); 2] = [("//", 11, 3), ("/", 16, 2)];

/// The stages of a search, newest messages first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Stages {
    /// The terms of each stage, in PostgreSQL's query language.
    pub places: Vec<String>,
    /// The first position of each stage.
    pub floors: Vec<i64>,
    /// If a stage leaves the search with fewer hits than this, the next stage is the last one.
    pub few: Vec<i64>,
}

impl Stages {
    /// The stages for the messages with the token `whole`, up to the position `last`.
    pub fn build(whole: &str, last: i64) -> Self {
        let mut stages = Self::default();
        let mut top = last;
        for (mark, bits, most) in SIZES {
            let newest = top >> bits;
            let oldest = newest - most + 1;
            let floor = oldest << bits;
            if floor <= 0 {
                break;
            }
            // If few hits are expected in all, search everything next: reading the hits is cheaper than another stage.
            stages.push(&terms(whole, mark, oldest..=newest), floor, 10_000 * (last - floor + 1) / last);
            top = floor - 1;
        }
        stages.push(&[whole.to_owned()], 0, 0);
        stages
    }

    fn push(&mut self, terms: &[String], floor: i64, few: i64) {
        let terms: Vec<String> = terms.iter().map(|term| format!("'{term}'")).collect();
        self.places.push(terms.join(" | "));
        self.floors.push(floor);
        self.few.push(few);
    }
}

/// The index terms of some blocks.
fn terms(whole: &str, mark: &str, places: RangeInclusive<i64>) -> Vec<String> {
    places.rev().map(|place| format!("{whole}{mark}{place}")).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_short_conversation_is_searched_at_once() {
        for last in [0, 1, 2_048, 6_143] {
            let stages = Stages::build("#5", last);
            assert_eq!((stages.places, stages.floors), (vec!["'#5'".to_owned()], vec![0]), "{last}");
        }
    }

    #[test]
    fn a_long_one_is_searched_from_its_end() {
        let stages = Stages::build("#5", 1_000_000);
        assert_eq!(stages.places, ["'#5//488' | '#5//487' | '#5//486'", "'#5/15' | '#5/14'", "'#5'"]);
        assert_eq!(stages.floors, [995_328, 917_504, 0]);
        assert_eq!(stages.few, [46, 824, 0]);
    }

    proptest! {
        #[test]
        fn every_message_is_in_a_stage_and_above_its_floor(last in 1_i64..1 << 40, part in any::<prop::sample::Index>()) {
            let seq = part.index(usize::try_from(last).unwrap()).cast_signed() as i64 + 1;
            let stages = Stages::build("#5", last);
            let stage = stages.floors.iter().position(|floor| *floor <= seq).unwrap();
            let known = [format!("'#5//{}'", seq >> 11), format!("'#5/{}'", seq >> 16), "'#5'".to_owned()];
            let mut terms = stages.places[stage].split(" | ");
            prop_assert!(terms.any(|term| known.iter().any(|known| known == term)), "{stages:?}");
            prop_assert!(stages.floors.is_sorted_by(|one, next| one > next));
        }
    }
}
