"""Looks at every page of the shop's site, wide and narrow: pictures, what runs over the edge, and axe's violations.

npm install axe-core    # in any folder
python -m benchmarks.check_site --data FOLDER --axe node_modules/axe-core/axe.min.js --pictures runs/site \
    --out benchmarks/records/check_site.json
"""

from __future__ import annotations

import argparse
import base64
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measuring import measurement, options_parser
from skillc_gym.envs.webshop import WebShopEnv
from skillc_gym.envs.webshop.browser import Browser, BrowserSettings, page_script
from skillc_gym.envs.webshop.site import AGENT, PERSON, ThreadedSite, open_site
from skillc_gym.episodes import Episode, EpisodeRecorder

SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
_RUN_AXE = """
const done = arguments[0];
axe.run(document).then((found) => done({
  violations: found.violations.map((rule) => [rule.id, rule.impact, rule.nodes.length]), passes: found.passes.length,
}));
"""


def check(options: argparse.Namespace) -> dict[str, Any]:
    """Visits every page at every size."""
    shop = {"data": options.data}
    env = WebShopEnv(**shop)
    episodes = [_episode(env, options.task, condition) for condition in (1, 0)]
    axe = options.axe.read_text(encoding="utf-8")
    with ThreadedSite(open_site(shop, episodes=episodes)) as site:
        rows = [
            row
            for name, (width, height) in SIZES.items()
            for row in _visit_all(site, env, options, axe, (name, BrowserSettings(width=width, height=height)))
        ]
    return {"command": "python -m benchmarks.check_site " + " ".join(sys.argv[1:]), "pages": rows}


def _visit_all(
    site: ThreadedSite, env: WebShopEnv, options: argparse.Namespace, axe: str, size: tuple[str, BrowserSettings]
) -> Iterator[dict[str, Any]]:
    name, settings = size
    browser = Browser(settings)
    try:
        tab = browser.tab()
        for page, path in _pages(site, env, options.task):
            browser.go(tab, site.url + path)
            browser.script(tab, page_script("loaded"))
            if options.pictures:
                options.pictures.mkdir(parents=True, exist_ok=True)
                data = browser.command(tab, "Page.captureScreenshot", format="png")["data"]
                (options.pictures / f"{page}_{name}.png").write_bytes(base64.b64decode(data))
            wide, seen = browser.script(tab, "return [document.documentElement.scrollWidth, innerWidth]")
            browser.script(tab, f"{axe};window.axe = axe;")
            found = browser.driver.execute_async_script(_RUN_AXE)
            rules, broken = found["passes"], found["violations"] or 0
            too_wide = "yes" if wide > seen else "no"
            yield {"page": page, "size": name, "rules": rules, "violations": broken, "too_wide": too_wide}
    finally:
        browser.close()


def _way(env: WebShopEnv, task: int) -> list[str]:
    """What buys a goal's own product with its options."""
    goal = env.goals.goal(task)
    values = [option if isinstance(option, str) else option[1] for option in goal.options]
    return [f"search[{goal.name}]", f"click[{goal.asin.lower()}]", *(f"click[{value}]" for value in values)]


def _pages(site: ThreadedSite, env: WebShopEnv, task: int) -> Iterator[tuple[str, str]]:
    """Every kind of page, by name and path."""
    tickets = site.site.tickets
    person, agent = (tickets.issue(task, audience) for audience in (PERSON, AGENT))
    yield "start", "/"
    env.reset(options={"task_id": env.goals.task_id(task)})
    yield "index", f"/e/{person}/{env.address}"
    search, *rest = _way(env, task)
    env.step(search)
    yield "results", f"/e/{person}/{env.address}"
    for action in rest:
        env.step(action)
    yield "item", f"/e/{person}/{env.address}"
    env.step("click[features]")
    yield "details", f"/e/{person}/{env.address}"
    env.step("click[< prev]")
    env.step("click[buy now]")
    for ticket in (person, agent):
        site.site.buy(ticket, env.address)
    yield "receipt", f"/e/{person}/{env.address}"
    yield "receipt_of_an_agent", f"/e/{agent}/{env.address}"
    yield "replays", "/replays"
    yield "replay", "/replays/0?step=2"
    yield "missing", "/e/nobody/home"


def _episode(env: WebShopEnv, task: int, condition: int) -> Episode:
    observation, info = env.reset(options={"task_id": env.goals.task_id(task)})
    skill = {"condition": condition, "skill": "shopping", "skill_text": "Compare before you buy."} if condition else {}
    recorder = EpisodeRecorder(observation, {**info, **skill})
    for action in [*_way(env, task), "click[buy now]"]:
        recorder.add(action, env.step(action))
    return recorder.episode()


def main(words: Sequence[str] | None = None) -> int:
    """Checks; returns 1 if anything is wrong."""
    parser = options_parser(__doc__)
    parser.add_argument("--data", default=None, help="WebShop products (default: WEBSHOP_DATA)")
    parser.add_argument("--axe", type=Path, required=True, help="the file axe.min.js of axe-core")
    parser.add_argument("--task", type=int, default=7, help="number of the goal that is shopped for")
    parser.add_argument("--pictures", type=Path, help="folder for pictures of all pages")
    return measurement(parser, check, words, failed=_wrong)


def _wrong(record: dict[str, Any]) -> bool:
    return any(row["violations"] or row["too_wide"] == "yes" for row in record["pages"])


if __name__ == "__main__":
    sys.exit(main())
