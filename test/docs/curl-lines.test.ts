import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type GatewayProcess, startGatewayProcess } from '../examples/gateway-process.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const DOCUMENTED = 'http://127.0.0.1:8787'

/** A request that a page tells to paste, to the gateway that `npm start` runs. */
interface CurlLine {
  readonly page: string
  /** The words of the command behind `curl`, as a shell splits them. */
  readonly words: readonly string[]
}

const lines = globSync(['README.md', 'lib/**/*.md'], { cwd: root }).sort().flatMap(linesOf)

/** A line that needs something filled in, such as a request id, has an ellipsis where that belongs. */
function linesOf(page: string): CurlLine[] {
  const text = readFileSync(join(root, page), 'utf8')
  const blocks = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)
  return blocks
    .flatMap((block) => block.replaceAll('\\\n', ' ').split('\n'))
    .filter((line) => line.startsWith('curl ') && line.includes(DOCUMENTED) && !line.includes('…'))
    .map((line) => ({ page, words: wordsOf(line).slice(1) }))
}

function wordsOf(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '')
}

/** The request that curl makes of these words: of its options those that the pages use. */
function requestOf(words: readonly string[]): { url: string; init: RequestInit } {
  const headers: [string, string][] = []
  let url = ''
  let method: string | undefined
  let body: string | FormData | undefined
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? ''
    if (word === '-H') {
      const [name = '', ...value] = (words[++i] ?? '').split(': ')
      headers.push([name, value.join(': ')])
    } else if (word === '-d') body = words[++i]
    else if (word === '-F') {
      const [name = '', ...value] = (words[++i] ?? '').split('=')
      body = body instanceof FormData ? body : new FormData()
      const [file] = value.join('=').match(/(?<=^@).+/) ?? []
      if (file === undefined) body.append(name, value.join('='))
      else body.append(name, new File(['what is in it'], file))
    } else if (word === '-X') method = words[++i]
    else if (word === '-o') i++
    else if (word.startsWith('http')) url = word
    else assert.fail(`a page uses the option "${word}" of curl, which is not known here`)
  }
  return { url, init: { method: method ?? (body ? 'POST' : 'GET'), headers, body: body ?? null } }
}

describe('the requests to paste', () => {
  let gateway: GatewayProcess
  before(async () => {
    gateway = await startGatewayProcess()
  })
  after(() => gateway.stop())

  it('are found', () => {
    const pages = new Set(lines.map(({ page }) => page))
    for (const page of ['README.md', 'lib/operations/text.md', 'lib/operations/images.md']) {
      assert.ok(pages.has(page), page)
    }
  })

  for (const { page, words } of lines) {
    it(`${page}: ${words.join(' ')}`.slice(0, 160), async () => {
      const { url, init } = requestOf(words)
      const response = await fetch(url.replace(DOCUMENTED, gateway.url), init)
      assert.equal(response.status, 200, await response.clone().text())
      assert.ok((await response.text()).length > 0)
    })
  }
})
