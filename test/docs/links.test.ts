import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import { ROOT } from './pages.ts'

const pages = globSync(['*.md', 'docs/*.md', 'lib/**/*.md', 'examples/**/*.md', 'test/**/*.md'], {
  cwd: ROOT,
}).sort()

/** The part of the repository that the package holds: a link out of it leads nowhere for users of the package. */
const PACKAGED = /^(?:README\.md|CHANGELOG\.md|LICENSE|docs\/.*|lib\/.*)$/

/** A page without its blocks of code, in which nothing is a link or a heading. */
function textOf(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8').replace(/^```.*?^```$/gms, '')
}

/** The names that a page's headings can be linked by. */
function anchorsOf(page: string): ReadonlySet<string> {
  const titles = [...textOf(page).matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => title)
  const words = titles.map((title) => title.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase())
  return new Set(words.map((title) => title.replace(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(' ', '-')))
}

function linksOf(page: string): string[] {
  return [...textOf(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target)
}

function brokenLinksOf(page: string): string[] {
  return linksOf(page).filter((target) => {
    if (/^https?:/.test(target)) return false
    const [file = '', anchor] = target.split('#')
    const linked = file === '' ? page : join(dirname(page), file)
    if (!existsSync(join(ROOT, linked))) return true
    return anchor !== undefined && !anchorsOf(linked).has(anchor)
  })
}

describe('links between the pages', () => {
  it('are found', () => assert.ok(pages.length > 40))

  for (const page of pages) {
    it(`${page} leads to what is there`, () => assert.deepEqual(brokenLinksOf(page), []))
  }

  for (const page of pages.filter((page) => PACKAGED.test(page))) {
    it(`${page} leads to nothing that the package does not hold`, () => {
      const files = linksOf(page).map((target) => target.split('#')[0] ?? '')
      const local = files.filter((file) => file !== '' && !/^https?:/.test(file))
      assert.deepEqual(
        local.filter((file) => !PACKAGED.test(join(dirname(page), file))),
        [],
      )
    })
  }
})
