"""Loaders that only read files: tiny ones in the published formats, complete, broken and incomplete."""

import csv
import gzip
import shutil
import sys

import numpy as np
import pytest

from skfairdp.datasets import fetch_celeba, fetch_chexpert, fetch_compas, fetch_fairface, fetch_mnist, fetch_utkface
from skfairdp.datasets._images import _DIGITS

# ---- COMPAS: the header line of compas-scores-two-years.csv, with two names that stand in it twice
HEADER = """
id,name,first,last,compas_screening_date,sex,dob,age,age_cat,race,juv_fel_count,decile_score,juv_misd_count,
juv_other_count,priors_count,days_b_screening_arrest,c_jail_in,c_jail_out,c_case_number,c_offense_date,
c_arrest_date,c_days_from_compas,c_charge_degree,c_charge_desc,is_recid,r_case_number,r_charge_degree,
r_days_from_arrest,r_offense_date,r_charge_desc,r_jail_in,r_jail_out,violent_recid,is_violent_recid,
vr_case_number,vr_charge_degree,vr_offense_date,vr_charge_desc,type_of_assessment,decile_score,score_text,
screening_date,v_type_of_assessment,v_decile_score,v_score_text,v_screening_date,in_custody,out_custody,
priors_count,start,end,event,two_year_recid
""".replace("\n", "")
PEOPLE = [
    {"sex": "Male", "age": 69, "race": "Other", "days_b_screening_arrest": -1, "two_year_recid": 0},
    {"sex": "Female", "age": 34, "race": "Caucasian", "days_b_screening_arrest": -30, "two_year_recid": 1},
    {"sex": "Male", "age": 24, "race": "African-American", "days_b_screening_arrest": 31, "two_year_recid": 1},
    {"sex": "Male", "age": 23, "race": "African-American", "days_b_screening_arrest": "", "two_year_recid": 0},
    {"sex": "Male", "age": 43, "race": "Other", "days_b_screening_arrest": 0, "is_recid": -1, "two_year_recid": 0},
    {"sex": "Male", "age": 44, "race": "Other", "days_b_screening_arrest": 0, "score_text": "N/A", "two_year_recid": 0},
    {"sex": "Male", "age": 41, "race": "Hispanic", "days_b_screening_arrest": 0, "c_charge_degree": "O",
     "two_year_recid": 1},
]  # fmt: skip


def write_compas(folder, n_rows=7_214):
    """A COMPAS of the published size: seven people, two of whom ProPublica would keep, and rows that it would not."""
    usual = {"juv_fel_count": 0, "juv_misd_count": 0, "juv_other_count": 1, "priors_count": 2, "c_charge_degree": "F",
             "is_recid": 0, "score_text": "Low", "name": "a name, with a comma"}  # fmt: skip
    others = {"sex": "Male", "age": 50, "race": "Asian", "two_year_recid": 0}
    left = 3_251 - sum(person["two_year_recid"] for person in PEOPLE)
    fill = [others | {"two_year_recid": int(i < left)} for i in range(n_rows - len(PEOPLE))]
    names = HEADER.split(",")
    with (folder / "compas-scores-two-years.csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(names)
        lines.writerows([[{**usual, **person}.get(name, "") for name in names] for person in PEOPLE + fill])
    return folder


@pytest.fixture(scope="module")
def compas(tmp_path_factory):
    return write_compas(tmp_path_factory.mktemp("compas"))


def test_compas_keeps_the_rows_that_propublica_keeps(compas):
    rows = fetch_compas(data_home=compas)
    assert rows.data["age"].tolist() == [69, 34] and rows.target.tolist() == [0, 1]
    assert rows.sensitive_features.tolist() == ["Non-White", "White"]
    assert len(fetch_compas(data_home=compas, all_rows=True).target) == 7_214
    assert "2 rows, 1 positive" in rows.DESCR


def test_compas_has_no_score_date_or_name_among_its_features(compas, monkeypatch):
    monkeypatch.setenv("SKFAIRDP_DATA", str(compas))
    counts = ["juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count"]
    assert fetch_compas().feature_names == ["sex", "age", *counts, "c_charge_degree"]
    both = fetch_compas(sensitive=["race", "sex"])
    assert both.feature_names == ["age", *counts, "c_charge_degree"]
    assert both.sensitive_features["sex"].tolist() == ["Male", "Female"]
    X, y = fetch_compas(include_sensitive=True, return_X_y=True)
    assert X["race"].tolist() == ["Other", "Caucasian"] and y.dtype == "int64"


def test_compas_that_is_not_the_published_table_is_refused(tmp_path):
    path = write_compas(tmp_path, n_rows=7_213) / "compas-scores-two-years.csv"
    with pytest.raises(ValueError, match=r"not the published one: it has 7213 rows, 3251 of them positive"):
        fetch_compas(data_home=tmp_path)
    path.write_text(path.read_text().replace("days_b_screening_arrest", "days"))
    with pytest.raises(ValueError, match=r"lacks the column\(s\) \['days_b_screening_arrest'\]"):
        fetch_compas(data_home=tmp_path)


def test_compas_without_its_file_says_which_one_goes_where(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"compas-scores-two-years\.csv with a header row, then.*data_home="):
        fetch_compas(data_home=tmp_path)
    monkeypatch.delenv("SKFAIRDP_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"no folder was given.*propublica"):
        fetch_compas()


# ---- Fashion-MNIST and MNIST in idx files
def idx(array):
    """The bytes of an idx file."""
    sizes = np.array(array.shape, dtype=">u4").tobytes()
    return bytes((0, 0, 8, array.ndim)) + sizes + array.tobytes()


def write_idx(folder, train, test, *, side=28, packed=True):
    """Blank images with these labels, under the published names."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, labels in (("train", train), ("t10k", test)):
        images = np.zeros((len(labels), side, side), dtype=np.uint8)
        images[:, 0, 0] = labels
        for name, array in ((f"{part}-images-idx3-ubyte", images), (f"{part}-labels-idx1-ubyte", labels)):
            content = idx(array.astype(np.uint8))
            (folder / f"{name}{'.gz' if packed else ''}").write_bytes(
                gzip.compress(content, compresslevel=1) if packed else content
            )


CLOTHES = np.arange(60_000) % 10, np.arange(10_000) % 10


@pytest.mark.few(1)
@pytest.mark.parametrize(("place", "packed"), [("fashion-mnist", True), ("FashionMNIST/raw", False), (".", False)])
def test_fashion_mnist_is_read_from_its_four_files(tmp_path, monkeypatch, place, packed):
    write_idx(tmp_path / place, *CLOTHES, packed=packed)
    monkeypatch.setenv("SKFAIRDP_DATA", str(tmp_path))
    rows = fetch_mnist(kind="fashion")
    assert rows.images.shape == (70_000, 28, 28) and rows.images.dtype == np.uint8
    assert rows.target.dtype == np.int64 and rows.target_names[9] == "Ankle boot"
    np.testing.assert_array_equal(rows.images[:, 0, 0], rows.target)  # images and labels in one order
    assert (rows.split == "train").sum() == 60_000 and rows.split[60_000] == "test"


def test_mnist_is_read_from_idx_files_too_and_never_mistaken_for_fashion_mnist(tmp_path):
    digits = [np.repeat(np.arange(10), counts) for counts in _DIGITS]
    write_idx(tmp_path / "mnist", *digits, packed=False)
    assert fetch_mnist(data_home=tmp_path).target.tolist() == np.concatenate(digits).tolist()
    with pytest.raises(ValueError, match=r"fashion_mnist arrays from .* are not the published ones"):
        fetch_mnist(kind="fashion", data_home=tmp_path / "mnist")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda raw: raw[:-1], "is not an idx file of bytes with 3 axes, or parts of it are missing"),
        (lambda raw: b"\0\0\x0d\3" + raw[4:], "is not an idx file of bytes"),
        (lambda raw: raw[:6], "is not an idx file of bytes"),
        (lambda raw: raw[:4] + b"\x80\0\0\0\x80\0\0\0\0\0\0\4", "is not an idx file of bytes"),  # 2⁶⁴ of them
        (lambda raw: b"", "is not an idx file of bytes"),
    ],
)
def test_damaged_idx_file_is_refused_by_name(tmp_path, damage, message):
    write_idx(tmp_path, np.arange(5), np.arange(5), packed=False)
    path = tmp_path / "t10k-images-idx3-ubyte"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=rf"t10k-images-idx3-ubyte {message}"):
        fetch_mnist(kind="fashion", data_home=tmp_path)


def test_packed_idx_file_that_cannot_be_unpacked_is_refused_by_name(tmp_path):
    write_idx(tmp_path, np.arange(5), np.arange(5))
    path = tmp_path / "t10k-labels-idx1-ubyte.gz"
    for content in (b"no archive", path.read_bytes()[:-9]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"t10k-labels-idx1-ubyte\.gz cannot be unpacked"):
            fetch_mnist(kind="fashion", data_home=tmp_path)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"neither t10k-labels-idx1-ubyte nor .*\.gz"):
        fetch_mnist(kind="fashion", data_home=tmp_path)


def test_fashion_mnist_without_files_says_which_ones_go_where(tmp_path, monkeypatch):
    with pytest.raises(
        FileNotFoundError, match=r"has train-images-idx3-ubyte\. Put the four files .*into a folder fashion-mnist"
    ):
        fetch_mnist(kind="fashion", data_home=tmp_path)
    monkeypatch.delenv("SKFAIRDP_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="no folder was given"):
        fetch_mnist(kind="fashion")


# ---- faces
def picture(path, color, size=(20, 20)):
    Image = pytest.importorskip("PIL.Image")
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, color).save(path)


UTK = {
    "100_1_0_20170112213500903.jpg.chip.jpg": (255, 0, 0),
    "26_0_4_20170104023102422.jpg": (0, 255, 0),
    "55_0_0_20170116232725357jpg.chip.jpg": (0, 0, 255),  # lacks a dot, as published
}


def utk(folder):
    for name, color in UTK.items():
        picture(folder / "UTKFace" / name, color)
    picture(folder / "UTKFace" / "61_1_20170109142408075.jpg.chip.jpg", (9, 9, 9))  # lacks the race, as published
    return folder


def test_utkface_reads_age_gender_and_race_from_names_and_lists_those_that_lack_one(tmp_path):
    faces = fetch_utkface(data_home=utk(tmp_path), size=4)
    assert faces.age.tolist() == [100, 26, 55] and faces.target.tolist() == [1, 0, 0]
    assert faces.target_names == ["male", "female"]
    assert faces.sensitive_features.tolist() == ["White", "Others", "White"]
    assert faces.skipped == ["61_1_20170109142408075.jpg.chip.jpg"]
    assert faces.data.shape == (3, 48) and faces.data.dtype == np.float32 and faces.image_shape == (3, 4, 4)
    channels = faces.data.reshape(3, 3, 16).mean(axis=2)
    np.testing.assert_allclose(channels, np.eye(3), atol=0.02)  # red, green and blue; JPEG loses a little
    turned = fetch_utkface(data_home=tmp_path / "UTKFace", target="race", sensitive="gender", size=4)
    assert turned.target.tolist() == [0, 4, 0] and turned.sensitive_features.tolist() == ["female", "male", "male"]


def test_some_pictures_are_drawn_by_the_random_state_and_keep_their_labels(tmp_path):
    utk(tmp_path)
    everything, some = fetch_utkface(data_home=tmp_path, size=2), [
        fetch_utkface(data_home=tmp_path, size=2, n_samples=2, random_state=seed) for seed in (0, 0, 1, 2, 3)
    ]  # fmt: skip
    assert some[0].age.tolist() == some[1].age.tolist()
    assert len({tuple(part.age) for part in some}) > 1
    for part in some:
        rows = [everything.age.tolist().index(age) for age in part.age]
        np.testing.assert_array_equal(part.data, everything.data[rows])
        np.testing.assert_array_equal(part.target, everything.target[rows])


def celeba(folder, *, header="2", names="5_o_Clock_Shadow Male Smiling", lines=None, sizes=(178, 218)):
    folder = folder / "celeba"
    for name, color in (("000001.jpg", (255, 255, 255)), ("000002.jpg", (0, 0, 0))):
        picture(folder / "img_align_celeba" / name, color, sizes)
    lines = ["000001.jpg -1  1 -1", "000002.jpg -1 -1  1"] if lines is None else lines
    (folder / "list_attr_celeba.txt").write_text("\n".join([header, names, *lines]) + "\n")
    return folder


def test_celeba_reads_attributes_and_cuts_pictures_to_the_square_in_their_middle(tmp_path):
    folder = celeba(tmp_path)
    faces = fetch_celeba(data_home=tmp_path, size=8)
    assert faces.target.tolist() == [0, 1] and faces.target_names == ["not Smiling", "Smiling"]
    assert faces.sensitive_features.tolist() == ["Male", "not Male"] and faces.split is None
    assert faces.data.shape == (2, 192) and faces.data.mean(axis=1).tolist() == pytest.approx([1, 0], abs=0.02)
    (folder / "list_eval_partition.txt").write_text("000001.jpg 2\n000002.jpg 0\n")
    again = fetch_celeba(data_home=folder, target="Male", sensitive="5_o_Clock_Shadow", size=1)
    assert again.split.tolist() == ["test", "train"] and again.target.tolist() == [1, 0]
    Image = pytest.importorskip("PIL.Image")
    framed = Image.new("RGB", (30, 50), (0, 0, 0))  # black above and below the square in the middle
    framed.paste((255, 255, 255), (0, 10, 30, 40))
    framed.save(folder / "img_align_celeba" / "000002.jpg", quality=95)
    assert fetch_celeba(data_home=folder, size=3).data[1].min() > 0.95


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"header": "3"}, "says 3 pictures and lists 2"),
        ({"header": "5_o_Clock_Shadow Male Smiling"}, "is not the published list"),
        ({"lines": ["000001.jpg -1 1 -1", "000002.jpg -1 -1"]}, "is not the published list"),
        ({"lines": ["000001.jpg -1 1 -1", "000002.jpg -1 -1 0"]}, "a value is neither 1 nor -1"),
        ({"names": "", "lines": []}, "is not the published list"),
    ],
)
def test_celeba_list_that_is_damaged_is_refused(tmp_path, changes, message):
    celeba(tmp_path, **changes)
    with pytest.raises(ValueError, match=rf"list_attr_celeba\.txt .*{message}"):
        fetch_celeba(data_home=tmp_path)


def test_celeba_partition_that_misses_a_picture_is_refused(tmp_path):
    (celeba(tmp_path) / "list_eval_partition.txt").write_text("000001.jpg 0\n")
    with pytest.raises(ValueError, match=r"list_eval_partition\.txt does not say 0, 1 or 2"):
        fetch_celeba(data_home=tmp_path, size=1)


FAIRFACE = {
    "train": ["train/1.jpg,50-59,Male,East Asian,True", "train/2.jpg,more than 70,Female,Latino_Hispanic,False"],
    "val": ["val/1.jpg,3-9,Male,White,True"],
}


def fairface(folder, header="file,age,gender,race,service_test"):
    for part, lines in FAIRFACE.items():
        for line in lines:
            picture(folder / "fairface" / line.split(",")[0], (128, 128, 128))
        (folder / "fairface" / f"fairface_label_{part}.csv").write_text("\n".join([header, *lines]) + "\n")
    return folder / "fairface"


def test_fairface_reads_both_tables_and_knows_the_split(tmp_path):
    fairface(tmp_path)
    faces = fetch_fairface(data_home=tmp_path, size=4)
    assert faces.target.tolist() == [1, 0, 1] and faces.target_names == ["Female", "Male"]
    assert faces.sensitive_features.tolist() == ["East Asian", "Latino_Hispanic", "White"]
    assert faces.split.tolist() == ["train", "train", "validation"] and faces.data.shape == (3, 48)
    ages = fetch_fairface(data_home=tmp_path / "fairface", target="age", sensitive="gender", size=1)
    assert ages.target_names == ["3-9", "50-59", "more than 70"] and ages.target.tolist() == [1, 2, 0]


def test_fairface_with_a_missing_column_or_table_is_refused(tmp_path):
    folder = fairface(tmp_path, header="file,age,sex,race,service_test")
    with pytest.raises(ValueError, match=r"fairface_label_train\.csv lacks the column\(s\) \['gender'\]"):
        fetch_fairface(data_home=tmp_path)
    (folder / "fairface_label_val.csv").unlink()
    fairface(tmp_path)
    (folder / "fairface_label_val.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no fairface_label_val\.csv"):
        fetch_fairface(data_home=tmp_path)


# ---- radiographs: the columns of CheXpert's train.csv that matter, and its sheet of people
CHEXPERT = """Path,Sex,Age,Frontal/Lateral,AP/PA,No Finding,Pleural Effusion
CheXpert-v1.0-small/train/patient00001/study1/view1_frontal.jpg,Female,68,Frontal,AP,1.0,
CheXpert-v1.0-small/train/patient00002/study1/view1_frontal.jpg,Male,87,Frontal,PA,,-1.0
CheXpert-v1.0-small/train/patient00002/study1/view2_lateral.jpg,Male,87,Lateral,,,1.0
CheXpert-v1.0-small/train/patient00002/study2/view1_frontal.jpg,Male,88,Frontal,AP,,1.0
"""
PATIENTS = """PATIENT,GENDER,AGE_AT_CXR,PRIMARY_RACE,ETHNICITY
patient00001,Female,68,"White, non-Hispanic",Not Hispanic
patient00002,Male,87,Asian,Not Hispanic
"""


def chexpert(folder, rows=CHEXPERT, people=PATIENTS):
    home = folder / "CheXpert-v1.0-small"
    for line in CHEXPERT.splitlines()[1:]:
        picture(folder / line.split(",")[0], (90, 90, 90))
    (home / "train.csv").write_text(rows)
    if people is not None:
        (home / "CHEXPERT DEMO.csv").write_text(people)
    return home


def test_chexpert_reads_frontal_views_with_the_person_of_each(tmp_path):
    chexpert(tmp_path)
    rows = fetch_chexpert(data_home=tmp_path, target="Pleural Effusion", sensitive="race", size=4)
    assert rows.data.shape == (3, 48) and rows.subject.tolist() == ["patient00001", "patient00002", "patient00002"]
    assert rows.target.tolist() == [0, 0, 1]  # what is blank or uncertain is not taken for a finding
    assert rows.sensitive_features.tolist() == ["White", "Asian", "Asian"]
    chexpert(tmp_path, people=PATIENTS.replace("patient00001", "patient00009"))
    assert fetch_chexpert(data_home=tmp_path, sensitive="race", size=2).sensitive_features[0] == "Other"
    usual = fetch_chexpert(data_home=tmp_path / "CheXpert-v1.0-small", size=2)
    assert usual.target.tolist() == [1, 0, 0] and usual.sensitive_features.tolist() == ["Female", "Male", "Male"]
    assert usual.target_names == ["not No Finding", "No Finding"]


@pytest.mark.parametrize(
    ("given", "files", "message"),
    [
        ({"target": "Hernia"}, {}, r"'target' parameter of fetch_chexpert must be one of \['No Finding', 'Pleural"),
        ({"sensitive": "age"}, {}, r"'sensitive' parameter of fetch_chexpert must be one of \['sex', 'race'\]"),
        ({}, {"rows": CHEXPERT.replace("Sex", "Gender")}, r"train\.csv lacks the column\(s\) \['Sex'\]"),
        ({"sensitive": "race"}, {"people": None}, r"has no CHEXPERT DEMO\.csv"),
        ({"sensitive": "race"}, {"people": PATIENTS.replace("patient", "p")}, "lists none of the people"),
    ],
)
def test_chexpert_that_lacks_a_column_or_a_person_is_refused(tmp_path, given, files, message):
    chexpert(tmp_path, **files)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        fetch_chexpert(data_home=tmp_path, size=2, **given)


@pytest.mark.parametrize(
    ("fetch", "pattern"),
    [
        (fetch_chexpert, "put train.csv and the folder train into a folder CheXpert-v1.0-small"),
        (fetch_utkface, "put its pictures, named age_gender_race_date.jpg, into a folder UTKFace"),
        (fetch_celeba, "put list_attr_celeba.txt and img_align_celeba into a folder celeba"),
        (fetch_fairface, "put fairface_label_train.csv, fairface_label_val.csv, train and val into a folder fairface"),
    ],
)
def test_faces_without_files_say_what_goes_where(fetch, pattern, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=rf"{pattern}.*SKFAIRDP_DATA or with data_home="):
        fetch(data_home=tmp_path)
    monkeypatch.delenv("SKFAIRDP_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="no folder was given"):
        fetch()


def test_pictures_that_are_damaged_or_gone_are_named(tmp_path):
    folder = celeba(tmp_path) / "img_align_celeba"
    whole = (folder / "000002.jpg").read_bytes()
    for content in (b"no picture", whole[: len(whole) // 2], b""):
        (folder / "000002.jpg").write_bytes(content)
        with pytest.raises(ValueError, match=r"000002\.jpg cannot be read"):
            fetch_celeba(data_home=tmp_path, size=2)
    shutil.rmtree(folder)
    with pytest.raises(FileNotFoundError, match=r"000001\.jpg is not there"):
        fetch_celeba(data_home=tmp_path, size=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": "age"}, r"'target' parameter of fetch_utkface must be one of \['gender', 'race'\]. Got 'age'"),
        ({"sensitive": None}, "'sensitive' parameter of fetch_utkface must be one of"),
        ({"size": 0}, r"'size' parameter of fetch_utkface must be an int in the range \[1, 1024\]"),
        ({"n_samples": 4}, r"'n_samples' parameter of fetch_utkface must be an int in the range \[1, 3\]"),
    ],
)
def test_unusable_parameter_names_itself(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        fetch_utkface(data_home=utk(tmp_path), **arguments)


def test_folder_whose_names_say_nothing_is_refused(tmp_path):
    picture(tmp_path / "UTKFace" / "portrait.jpg", (1, 2, 3))
    with pytest.raises(ValueError, match=r"None of the 1 pictures in .* is named age_gender_race_date"):
        fetch_utkface(data_home=tmp_path)


def test_without_pillow_the_error_says_what_to_install(tmp_path, monkeypatch):
    utk(tmp_path)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"fetch_utkface needs Pillow .* pip install 'skfairdp\[images\]'"):
        fetch_utkface(data_home=tmp_path)
