import assert from 'node:assert/strict'
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { before, describe, it } from 'node:test'
import { inflateSync } from 'node:zlib'
import { brokenLinks } from '../../../docs/site/broken-links.ts'
import { pagesOfPackage } from '../../../docs/site/pages.ts'
import { ROOT } from '../../docs/pages.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { temporaryFolder } from '../../support/gateway-process.ts'
import { PATH, run } from '../package/packages.ts'

/** A result of the search: a page or an export, and where it is. */
interface SearchRow {
  readonly name: string
  readonly url: string
}

describe('the site that `npm run docs` builds', () => {
  let site = ''
  const cleanUp = cleaningUp()
  before(async () => {
    const folder = await temporaryFolder()
    cleanUp.after(() => folder.remove())
    site = join(folder.path, 'site')
    run(ROOT, 'npm', ['run', '--silent', 'docs', '--', site], { ...process.env, PATH })
  })

  const searchRows = (): readonly SearchRow[] => {
    const [, data = ''] = /"([^"]+)"/.exec(readFileSync(join(site, 'assets/search.js'), 'utf8')) ?? []
    return JSON.parse(inflateSync(Buffer.from(data, 'base64')).toString()).rows
  }

  it('has every page of the package, and the search finds it', () => {
    const pages = pagesOfPackage()
    assert.ok(pages.length > 40)
    const documents = searchRows().filter(({ url }) => url.startsWith('documents/'))
    const found = new Map(documents.map(({ name, url }) => [name, url]))
    for (const { title, path } of pages) {
      const url = found.get(title)
      assert.ok(url !== undefined && existsSync(join(site, url)), path)
    }
  })

  it('has every public subpath, and the search finds what it exports', () => {
    const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    const modules = globSync('modules/*.html', { cwd: site })
    // The manifest and the command export nothing.
    assert.equal(modules.length, Object.keys(exports).length - 2)
    assert.ok(searchRows().some(({ url }) => url === 'functions/express-model-gateway.rateLimit.html'))
  })

  it('has no link that leads nowhere, in its pages and in llms.txt', () => {
    assert.deepEqual(brokenLinks(site), [])
    const links = [...readFileSync(join(site, 'llms.txt'), 'utf8').matchAll(/\]\(([^)]+)\)/g)]
    assert.equal(links.length, pagesOfPackage().length)
    for (const [, target = ''] of links) assert.ok(existsSync(join(site, target)), target)
  })
})

it('a link to a page or to a place that is not there is found', async (t) => {
  const folder = await temporaryFolder()
  t.after(() => folder.remove())
  const write = (file: string, html: string) => {
    mkdirSync(dirname(join(folder.path, file)), { recursive: true })
    writeFileSync(join(folder.path, file), html)
  }
  write('index.html', '<a href="a/one.html#top">1</a> <a href="a/two.html">2</a> <a href="#no">3</a>')
  write('a/one.html', '<h1 id="top">One</h1> <a href="../index.html">1</a> <a href="one.html#no">2</a>')
  assert.deepEqual(brokenLinks(folder.path).sort(), [
    'a/one.html: one.html#no',
    'index.html: #no',
    'index.html: a/two.html',
  ])
})
