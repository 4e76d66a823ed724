//! Tables as lines of text, for dialects without tables.

/// Draws rows, the first of which is the head.
pub fn draw(rows: &[Vec<String>]) -> String {
    let rows: Vec<_> = rows.iter().map(|row| filled(row)).collect();
    let mut widths = widths(&rows);
    let bare = length(&rows, &vec![0; widths.len()]);
    // Nearly empty cells aren't padded: the table would grow many times.
    if length(&rows, &widths) > 4 * bare {
        widths.fill(0);
    }
    let mut drawn = String::new();
    for (nth, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{:width$}", cell.trim()));
        drawn.push_str(cells.collect::<Vec<_>>().join(" | ").trim_end());
        drawn.push('\n');
        if nth == 0 {
            drawn.push_str(
                &widths.iter().map(|&width| "-".repeat(width.max(1))).collect::<Vec<_>>().join("-|-"),
            );
            drawn.push('\n');
        }
    }
    drawn
}

/// A row without its trailing empty cells: the parser pads rows to the width of the head.
fn filled(row: &[String]) -> &[String] {
    let empty = row.iter().rev().take_while(|cell| cell.trim().is_empty()).count();
    &row[..row.len() - empty]
}

fn widths(rows: &[&[String]]) -> Vec<usize> {
    let columns = rows.iter().map(|row| row.len()).max().unwrap_or_default();
    let mut widths = vec![0; columns];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(*row) {
            *width = (*width).max(cell.trim().chars().count().min(40));
        }
    }
    widths
}

/// Characters of all cells with their separators.
fn length(rows: &[&[String]], widths: &[usize]) -> usize {
    let cells = rows.iter().flat_map(|row| row.iter().zip(widths));
    cells.map(|(cell, &width)| cell.trim().chars().count().max(width) + " | ".len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [["Name", "n"], ["Ünal", "12"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(draw(&rows), "Name | n\n-----|---\nÜnal | 12\n");
    }

    #[test]
    fn a_table_of_nearly_empty_cells_is_not_padded() {
        let row = |cells: &[&str]| cells.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>();
        let head = "h".repeat(40);
        let mut rows = vec![row(&[head.as_str(); 3])];
        rows.extend((0..50).map(|_| row(&["", "a", ""])));
        let lines = draw(&rows);
        let lines: Vec<_> = lines.lines().collect();
        assert_eq!((lines.len(), lines[1], lines[51]), (52, "--|---|--", " | a"));
    }
}
