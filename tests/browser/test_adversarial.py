import io
import json
import zipfile
from pathlib import Path

import pytest

from benchmarks.driving import PATIENCE, settled, visit
from tests.browser.test_labelling import start_digits


def press_attacks(page, *names):
    """Press attacks in the menu that holds them, which is shut afterwards."""
    page.locator(".st-key-attack-more button").click()
    for name in names:
        page.locator(".st-key-attack-names").get_by_text(name, exact=True).click()
        settled(page)
    page.keyboard.press("Escape")
    page.locator(".st-key-attack-names").wait_for(state="hidden")


def fill(page, key, value):
    field = page.locator(f".st-key-{key} input")
    field.fill(str(value))
    field.press("Enter")
    settled(page)


@pytest.mark.slow  # alone: an experiment in the browser from its start to its download
def test_attack_a_model_look_at_it_and_take_the_results_away(page, server, tmp_path: Path):
    visit(page, f"{server.url}/adversarial")
    fill(page, "attack-images", 12)
    page.click(".st-key-start-attack button")
    page.wait_for_selector(".st-key-attack-downloads", timeout=4 * PATIENCE)
    settled(page)
    # found again by its address, as after F5
    page.wait_for_function("location.search.includes('attack=')")
    page.reload()
    page.wait_for_selector(".st-key-attack-downloads")
    settled(page)
    text = page.inner_text("[data-testid=stMain]")
    assert "12 images attacked" in text and "What this does not show" in text
    assert page.locator("[class*=st-key-example-]").count() == 8
    # pictures first, the controls under them, the rest folded
    above, under = (
        page.locator(f".st-key-{one}").bounding_box() for one in ("examples", "attack-shown-tools")
    )
    assert above["y"] + above["height"] <= under["y"] < 900
    assert page.locator(".plot-container").count() == 0
    # what a fold holds moves the next one: it is waited for before that is pressed
    for fold, keys in (
        ("grows", ("strength-curves",)),
        ("notices", ("detection-curves", "roc", "histograms")),
        ("closely", ("latent-bars",)),
    ):
        page.locator(f".st-key-attack-{fold} summary").click()
        settled(page)
        for key in keys:
            page.wait_for_selector(f".st-key-{key} .plot-container")
    names = page.locator(".st-key-detection-curves .legendtext").all_text_contents()
    assert names[0] == "Variation ratio" and "Entropy" in names

    # another detector, another attack, successful attacks only
    page.get_by_role("radio", name="Entropy").or_(page.get_by_role("button", name="Entropy")).first.click()
    settled(page)
    page.wait_for_function("document.body.innerText.includes('its entropy before and after')")
    page.locator(".st-key-attack-shown").get_by_text("Adaptive PGD").click()
    settled(page)
    page.wait_for_function("document.body.innerText.includes('by Adaptive PGD at strength')")
    page.locator(".st-key-attack-worked label").first.click()
    settled(page)
    assert page.locator("[class*=st-key-example-]").count() >= 1
    assert page.locator("[data-testid=stException]").count() == 0

    with page.expect_download() as waiting:
        page.click(".st-key-download-attack a")
    path = tmp_path / "results.zip"
    waiting.value.save_as(path)
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as bundle:
        settings = json.loads(bundle.read("settings.json"))
    assert settings["images"] == 12 and settings["pool"] == "digits"

    page.click(".st-key-new-attack button")
    page.wait_for_selector(".st-key-start-attack")
    page.wait_for_function("!location.search.includes('attack=')")


@pytest.mark.slow  # alone: a project's own model under attack, before and after its first fit
def test_the_projects_own_model_is_attacked(page, server):
    project = start_digits(page, server)
    visit(page, f"{server.url}/adversarial?project={project}")
    page.locator(".st-key-attack-subject").get_by_text("This project's model").click()
    page.wait_for_selector("text=has no model yet")
    visit(page, f"{server.url}/label?project={project}")
    page.wait_for_selector(".st-key-oracle")
    fill(page, f"budget-{project}", 12)
    page.click(".st-key-oracle-budget button")
    page.wait_for_function(
        "document.querySelector('[data-testid=stSidebar]')?.innerText.match(/[1-9][0-9] of /)",
        timeout=4 * PATIENCE,
    )
    visit(page, f"{server.url}/adversarial?project={project}")
    page.wait_for_selector("text=/trained on [0-9]+ labels/")
    fill(page, "attack-images", 10)
    page.click(".st-key-start-attack button")
    page.wait_for_selector(".st-key-attack-downloads", timeout=4 * PATIENCE)
    settled(page)
    text = page.inner_text("[data-testid=stMain]")
    assert "the own model of" in text and "10 images attacked" in text
    page.locator(".st-key-attack-notices summary").click()
    settled(page)
    page.click(".st-key-save-roc button")
    with page.expect_download() as waiting:
        page.click(".st-key-save-roc-html a")
    assert waiting.value.suggested_filename == "attack-roc.html"


@pytest.mark.slow  # alone: choices of attacks that cannot be are told beside the button
def test_what_cannot_be_done_is_said_in_place(page, server):
    visit(page, f"{server.url}/adversarial")
    page.get_by_text("FGSM: One step").wait_for()
    # transfer needs the softmax network
    press_attacks(page, "Transfer")
    page.get_by_text("Transfer: ").wait_for()
    page.click(".st-key-start-attack button")
    page.wait_for_selector("text=needs the softmax network")
    press_attacks(page, "FGSM", "Adaptive PGD", "Random signs", "Transfer")
    page.get_by_text("Each image is changed in these ways").wait_for(state="hidden")
    page.click(".st-key-start-attack button")
    page.wait_for_selector("text=Choose at least one attack")


def test_results_of_an_earlier_server_are_said_to_be_gone(page, server):
    visit(page, f"{server.url}/adversarial?attack=00000000")
    page.wait_for_selector("text=That experiment is gone")
    page.wait_for_selector(".st-key-start-attack")
