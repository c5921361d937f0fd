//! The Pareto front of two figures: the configurations that no other configuration beats in both figures.

/// Returns, for each point, whether it is on the front: no other point is at least as large in both figures
/// and larger in one of them. Equal points are both on the front. A point with a figure that is not a number
/// is never on it.
pub fn front(points: &[(f64, f64)]) -> Vec<bool> {
    let beats = |a: (f64, f64), b: (f64, f64)| a.0 >= b.0 && a.1 >= b.1 && (a.0 > b.0 || a.1 > b.1);
    let known = |point: (f64, f64)| point.0.is_finite() && point.1.is_finite();
    let unbeaten = |point: &(f64, f64)| known(*point) && !points.iter().any(|other| beats(*other, *point));
    points.iter().map(unbeaten).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_what_is_beaten_in_nothing_stays() {
        let points = [(1.0, 5.0), (2.0, 4.0), (2.0, 3.0), (3.0, 1.0), (1.0, 5.0), (f64::NAN, 9.0)];
        assert_eq!(front(&points), [true, true, false, true, true, false]);
    }

    proptest! {
        #[test]
        fn every_point_off_the_front_is_beaten_by_one_on_it(
            points in proptest::collection::vec((0u8..20, 0u8..20), 1..40)
        ) {
            let points: Vec<(f64, f64)> = points.into_iter().map(|(x, y)| (x.into(), y.into())).collect();
            let on = front(&points);
            for (at, point) in points.iter().enumerate() {
                let beaten = (0..points.len()).any(|other| {
                    on[other] && points[other].0 >= point.0 && points[other].1 >= point.1 && points[other] != *point
                });
                prop_assert_eq!(on[at], !beaten);
            }
        }
    }
}
