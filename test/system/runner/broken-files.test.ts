import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { temporaryFolder } from '../../support/gateway-process.ts'
import { runningProcesses } from '../../support/processes.ts'
import type { SuiteName } from '../../support/runner/suites.ts'
import { until } from '../../support/until.ts'

const RUN = 'test/support/runner/run.ts'
/** How long a file may take here, in seconds; enough for a start on a busy machine. */
const LIMIT = 16
/** Each file is run twice where others were in its process, and the machine may be busy. */
const ENDS_WITHIN_MS = 170_000

const LATE = `had not ended after ${LIMIT} s, and was killed with all that it had started`
const OPEN =
  /^did not end for what it had left open \([A-Za-z, ]+\), and was killed with all that it had started$/

/** A child process that stays, and how the test finds it. */
const stays = (mark: string, options = '{}') =>
  `spawn(process.execPath, ['--eval', 'setInterval(() => {}, 1000)', '${mark}'], ${options})`

/** Never gives way, and sleeps meanwhile: others on the machine have work to do. */
const LOOPS = 'for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000)'

const HANGS = 'new Promise(() => setInterval(() => {}, 1000))'

interface BrokenFile {
  readonly is: string
  readonly text: string
  /** The runner's message about the file. */
  readonly told: string | RegExp
  /** And of its tests. */
  readonly because?: RegExp
}

const BROKEN: readonly BrokenFile[] = [
  {
    is: 'an assertion that fails',
    text: `it('fails', () => assert.equal(1, 2))`,
    told: 'failed',
    because: /not ok: fails .*\n +AssertionError.*1 == 2/,
  },
  {
    is: 'a start-up that never ends, and a hook that needs it',
    text: `let server; before(() => ${HANGS}); after(() => server.close()); it('runs', () => {})`,
    told: OPEN,
    because: /not ok: the file itself .*\n +failed running before hook/,
  },
  {
    is: 'a handle that stays open behind a test that passes',
    text: `it('passes', () => void createServer().listen(0))`,
    told: OPEN,
  },
  {
    is: 'a timer that goes on behind a test that passes',
    text: `it('passes', () => void setTimeout(() => {}, 11_000))`,
    told: OPEN,
  },
  { is: 'an endless loop', text: `it('loops', () => { ${LOOPS} })`, told: LATE },
  {
    is: 'a hook that throws behind tests that pass',
    text: `after(() => { throw new Error('no end') }); it('passes', () => {})`,
    told: 'failed',
    because: /not ok: the file itself .*\n +Error: no end/,
  },
  {
    is: 'a hook that never ends',
    text: `after(() => ${HANGS}); it('passes', () => {})`,
    told: OPEN,
    because: /not ok: the file itself .*\n.*timed out/,
  },
  {
    is: 'a child process that is left behind',
    text: `it('passes', () => ${stays('MARK', `{ stdio: 'inherit' }`)}.unref())`,
    told: /^has left processes behind: .*MARK/,
  },
  {
    is: 'a child process that holds it up, in a group of its own',
    text: `it('hangs', async () => { await once(${stays('MARK', '{ detached: true }')}, 'exit') })`,
    told: OPEN,
  },
  {
    is: 'an end in the middle of its tests',
    text: `it('leaves', () => process.exit(0)); it('is not reached', () => {})`,
    told: 'ended with code 0 before its tests did',
  },
  { is: 'no test', text: '', told: 'has no test' },
  {
    is: 'a promise that nobody waits for and that fails',
    text: `it('passes', () => void Promise.reject(new Error('unheard')))`,
    told: 'ended with code 1',
    because: /unheard/,
  },
  {
    is: 'a clock of the process that is not put back',
    text: `it('passes', () => void (Date.now = () => 7))`,
    told: 'ended with code 1',
    because: /not ok: the process is as it was .*\n.*Date\.now/,
  },
  {
    is: 'a database server, and a loop behind its start',
    text: `it('loops', { timeout: 60_000 }, async () => { await startPostgres({ settings: { cluster_name: 'MARK' } }); ${LOOPS} })`,
    told: LATE,
  },
  {
    is: 'a database server, and an end behind its start',
    text: `it('leaves', { timeout: 60_000 }, async () => { await startPostgres({ settings: { cluster_name: 'MARK' } }); process.exit(0) })`,
    told: 'ended with code 0 before its tests did',
  },
  {
    is: 'a fault of syntax',
    text: `it('`,
    told: 'failed',
    because: /not ok: the file itself (?:.|\n)*SyntaxError/,
  },
]

const IMPORTS = `
import assert from 'node:assert'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { after, before, it } from 'node:test'
`
/** Takes most of a file's time, and few need it. */
const IMPORTS_OF_SERVERS = `
import { startPostgres } from '${new URL('../../support/postgres-server.ts', import.meta.url)}'
`

/** Runs files of such texts as those of a suite; of \`test\`, several run in one process. */
async function startRun(t: TestContext, suite: SuiteName, mark: string, texts: readonly string[]) {
  const folder = await temporaryFolder()
  t.after(() => folder.remove())
  const files = texts.map((_, i) => join(folder.path, `${String(i).padStart(2, '0')}.test.mjs`))
  for (const [i, text] of texts.entries()) {
    const imports = text.includes('startPostgres') ? IMPORTS + IMPORTS_OF_SERVERS : IMPORTS
    await writeFile(files[i]!, imports + text.replaceAll('MARK', mark))
  }
  const args = [RUN, suite, ...files, `--limit=${LIMIT}`, '--test-timeout=3000']
  const run = spawn(process.execPath, ['--conditions=@express-model-gateway/source', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => run.kill('SIGKILL'))
  let said = ''
  run.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  const ended = once(run, 'close').then(([code]) => code as number | null)
  return { run, files, ended, said: () => said }
}

const marked = (mark: string) => runningProcesses().filter(({ command }) => command.includes(mark))

describe('a run of test files', { concurrency: true }, () => {
  for (const suite of ['test', 'system'] as const)
    it(`ends, red, whatever is wrong with them, and leaves nothing behind: ${suite}`, {
      timeout: 180_000,
    }, async (t) => {
      const mark = `broken-${suite}-${process.pid}`
      const fine = `it('is fine', () => {})`
      const started = performance.now()
      const texts = [fine, ...BROKEN.map(({ text }) => text), fine]
      const { ended, files, said } = await startRun(t, suite, mark, texts)
      assert.equal(await ended, 1)
      const ms = performance.now() - started
      assert.ok(ms < ENDS_WITHIN_MS, `${ms} ms`)
      assert.deepEqual(marked(mark), [])

      const [first, again = ''] = said().split('# what failed, again\n')
      const told = (output: string, file: string) =>
        output
          .slice(output.search(new RegExp(`^(not )?ok +[0-9.]+ s +${file}`, 'm')))
          .split(/\n(?=(?:not )?ok )/)[0] ?? ''
      for (const file of [files[0]!, files.at(-1)!]) assert.match(told(first!, file), /^ok .* \(1\)/)
      for (const [i, { is, told: expected, because }] of BROKEN.entries()) {
        for (const output of [first!, again]) {
          const [head = '', ...rest] = told(output, files[i + 1]!).split('\n')
          assert.match(head, /^not ok /, is)
          const reason = head.slice(head.indexOf(': ') + 2)
          if (typeof expected === 'string') assert.equal(reason, expected, is)
          else assert.match(reason.replaceAll(mark, 'MARK'), expected, is)
          if (because) assert.match(rest.join('\n'), because, is)
        }
      }
      assert.match(said(), /^# fail 1\d\n# cancelled \d+\n# skipped 0\n# todo 0\n# duration_ms \d+\n$/m)
    })

  it('names a file that passed only at the second try', { timeout: 180_000 }, async (t) => {
    const folder = await temporaryFolder()
    t.after(() => folder.remove())
    const mark = join(folder.path, `second-try-${process.pid}`)
    const failsOnce = `it('passes at the second try', () => {
      if (existsSync('MARK')) return
      writeFileSync('MARK', '')
      assert.fail('the first try')
    })`
    const { ended, files, said } = await startRun(t, 'system', mark, [
      `import { existsSync, writeFileSync } from 'node:fs'\n${failsOnce}`,
      `it('passes', () => {})`,
    ])
    assert.equal(await ended, 0)
    assert.match(said(), new RegExp(`\n# passed only at the second try\n${files[0]}\n\n# tests 2\n`))
    assert.ok(!said().includes('# what failed, again'))
  })

  it('names and counts what is skipped, a whole suite too', { timeout: 180_000 }, async (t) => {
    const suite = `import { describe } from 'node:test'
      describe('a suite', { skip: 'no Postgres' }, () => { it('does not run', () => {}) })`
    const test = `it('a test', { skip: 'no Redis' }, () => {})`
    const { ended, said } = await startRun(t, 'system', 'skipped', [suite, test])
    assert.equal(await ended, 0)
    assert.match(said(), /^ {2}skipped: a suite: no Postgres$/m)
    assert.match(said(), /^ {2}skipped: a test: no Redis$/m)
    assert.match(said(), /^# tests 2\n(?:# .*\n)*# skipped 2$/m)
  })

  it('that is asked to end ends its files too', { timeout: 180_000 }, async (t) => {
    const mark = `told-to-end-${process.pid}`
    const file = `it('hangs', async () => { await once(${stays('MARK')}, 'exit') })`
    const { run, ended } = await startRun(t, 'system', mark, [file])
    await until(() => marked(mark).length > 0, 'the child of the file', 30_000)
    run.kill('SIGTERM')
    assert.equal(await ended, 143)
    await until(() => marked(mark).length === 0, 'its end', 5000)
  })
})
