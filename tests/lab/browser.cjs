// Opens a page in Chromium like a user and prints its findings as JSON: node browser.cjs MODULES CHROMIUM URL [WIDTH…]
// MODULES is a folder with playwright-core and axe-core. This script is not part of the program.
const [modules, executablePath, url, ...widths] = process.argv.slice(2);
const { chromium } = require(`${modules}/playwright-core`);
const axe = require('fs').readFileSync(`${modules}/axe-core/axe.min.js`, 'utf8');

(async () => {
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
  const found = { said: [], requests: [], wide: [], findings: [], focused: [], unseen: [] };
  for (const scheme of ['light', 'dark']) {
    for (const width of widths.map(Number)) {
      const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme, bypassCSP: true });
      const page = await context.newPage();
      page.on('console', (message) => found.said.push(`${message.type()}: ${message.text()}`));
      page.on('pageerror', (error) => found.said.push(`error: ${error}`));
      page.on('request', (request) => found.requests.push(request.url()));
      await page.goto(url, { waitUntil: 'load' });
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      if (overflow > 0) found.wide.push(`${width} px: ${overflow} px too wide`);
      await page.evaluate(axe);
      const result = await page.evaluate(() => axe.run(document, { resultTypes: ['violations'] }));
      for (const violation of result.violations) {
        if (['serious', 'critical'].includes(violation.impact)) {
          const nodes = violation.nodes.slice(0, 3).map((node) => node.html.slice(0, 160));
          found.findings.push(`${scheme}, ${width} px: ${violation.id}: ${violation.help}: ${nodes.join(' | ')}`);
        }
      }
      await context.close();
    }
  }
  // By keyboard: the elements that Tab reaches, in order, and whether the focus is visible.
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
  await page.goto(url, { waitUntil: 'load' });
  for (let n = 0; n < 60; n += 1) {
    await page.keyboard.press('Tab');
    const at = await page.evaluate(() => {
      const element = document.activeElement;
      if (!element || element === document.body) return null;
      const style = getComputedStyle(element);
      const seen = style.outlineStyle !== 'none' || style.boxShadow !== 'none';
      return { what: `${element.tagName.toLowerCase()}: ${element.textContent.trim().slice(0, 40)}`, seen };
    });
    if (!at) break;
    found.focused.push(at.what);
    if (!at.seen) found.unseen.push(at.what);
  }
  // Enter opens folded parts.
  const folded = await page.$('details:not([open]) > summary');
  if (folded) {
    await folded.focus();
    await page.keyboard.press('Enter');
    found.opened = await folded.evaluate((summary) => summary.parentElement.open);
  }
  await browser.close();
  console.log(JSON.stringify(found));
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
