use super::*;

const WHITE: u32 = 0xff_ffff;
/// The ground of a panel of a dark page, and one of a dark terminal.
const DARK: u32 = 0x1b_1f25;
const NIGHT: u32 = 0x14_171b;

/// How people see who lack no, red, green or blue cones (Machado, Oliveira and Fernandes, 2009).
const EYES: [[[f64; 3]; 3]; 4] = [
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    [
        [0.152_286, 1.052_583, -0.204_868],
        [0.114_503, 0.786_281, 0.099_216],
        [-0.003_882, -0.048_116, 1.051_998],
    ],
    [
        [0.367_322, 0.860_646, -0.227_968],
        [0.280_085, 0.672_501, 0.047_413],
        [-0.011_820, 0.042_940, 0.968_881],
    ],
    [
        [1.255_528, -0.076_749, -0.178_779],
        [-0.078_411, 0.930_809, 0.147_602],
        [0.004_733, 0.691_367, 0.303_900],
    ],
];

fn linear(rgb: u32) -> [f64; 3] {
    [16, 8, 0].map(|shift| {
        let value = f64::from((rgb >> shift) & 0xff) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    })
}

fn dot(row: [f64; 3], of: [f64; 3]) -> f64 {
    row.into_iter().zip(of).map(|(a, b)| a * b).sum()
}

fn contrast(one: u32, other: u32) -> f64 {
    let light = |rgb| dot([0.2126, 0.7152, 0.0722], linear(rgb)) + 0.05;
    let (one, other) = (light(one), light(other));
    one.max(other) / one.min(other)
}

/// Oklab coordinates, as somebody sees the colour.
fn seen(rgb: u32, eyes: [[f64; 3]; 3]) -> [f64; 3] {
    let seen = eyes.map(|row| dot(row, linear(rgb)).clamp(0.0, 1.0));
    let cones = [
        [0.412_221_470_8, 0.536_332_536_3, 0.051_445_992_9],
        [0.211_903_498_2, 0.680_699_545_1, 0.107_396_956_6],
        [0.088_302_461_9, 0.281_718_837_6, 0.629_978_700_5],
    ]
    .map(|row| dot(row, seen).cbrt());
    [
        [0.210_454_255_3, 0.793_617_785, -0.004_072_046_8],
        [1.977_998_495_1, -2.428_592_205, 0.450_593_709_9],
        [0.025_904_037_1, 0.782_771_766_2, -0.808_675_766],
    ]
    .map(|row| dot(row, cones))
}

/// How far two colours are apart for whoever sees the least of it.
fn apart(one: u32, other: u32) -> f64 {
    let distance = |eyes| {
        let (one, other) = (seen(one, eyes), seen(other, eyes));
        one.into_iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
    };
    EYES.into_iter().map(distance).fold(f64::INFINITY, f64::min)
}

/// What terminals make of one of the 256 colours beyond the first 16.
fn of_terminal(tint: Tint) -> u32 {
    let level = |step: u32| if step == 0 { 0 } else { 55 + 40 * step };
    match u32::from(tint.terminal) {
        at @ 16..232 => {
            let at = at - 16;
            level(at / 36) << 16 | level(at / 6 % 6) << 8 | level(at % 6)
        }
        at => (8 + 10 * (at - 232)) * 0x01_0101,
    }
}

#[test]
fn every_colour_can_be_read_on_its_ground() {
    for tint in Class::ALL.map(Tint::of_class).into_iter().chain([WARN]) {
        assert!(tint.terminal >= 16, "themes change the first 16");
        for ground in [WHITE, NIGHT, 0] {
            assert!(contrast(of_terminal(tint), ground) >= 3.0, "{tint:?} on {ground:06x}");
        }
        assert!(contrast(tint.light, WHITE) >= 4.5, "{tint:?}");
        assert!(contrast(tint.dark, DARK) >= 4.5, "{tint:?}");
    }
}

#[test]
fn no_two_classes_look_alike_to_anybody() {
    let wheres: [fn(Tint) -> u32; 3] = [of_terminal, |it| it.light, |it| it.dark];
    for colour in wheres {
        for (at, one) in Class::ALL.into_iter().enumerate() {
            for other in Class::ALL.into_iter().skip(at + 1) {
                let verdicts = [Class::Pass, Class::Fail, Class::Error];
                let least =
                    if verdicts.contains(&one) && verdicts.contains(&other) { 0.12 } else { 0.05 };
                let apart = apart(colour(Tint::of_class(one)), colour(Tint::of_class(other)));
                assert!(apart >= least, "{one} and {other}: {apart:.3}");
            }
        }
    }
}

#[test]
fn pages_have_the_colours_of_the_table() {
    let page = include_str!("../html/report.css");
    for class in Class::ALL {
        let line = format!("  --{class}: {};\n", Tint::of_class(class).css());
        assert!(page.contains(&line), "report.css lacks {line}");
    }
    assert!(page.contains(&format!("  --warn: {};\n", WARN.css())), "{}", WARN.css());
    // The comparison has none of its own.
    let comparison = include_str!("../compare/page.css");
    assert!(!comparison.contains('#') && !comparison.contains("rgb"), "{comparison}");
    assert!(comparison.contains("color: var(--fail-word)"), "{comparison}");
}
