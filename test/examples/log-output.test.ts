import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { temporaryFolder } from '../support/gateway-process.ts'
import { OWN_PROGRAM_FLAGS } from '../support/own-program.ts'
import { until } from '../support/until.ts'

/** Logs a line of 1 KB at each text that it reads, and says so on its standard error. */
const PROGRAM = `
import { openLog } from ${JSON.stringify(new URL('../../examples/gateway/telemetry/log.ts', import.meta.url).href)}
const logger = openLog('info')
process.stdin.on('data', (given) => {
  const [lines, from] = JSON.parse(given)
  for (let i = 0; i < lines; i++) logger.info({ at: from + i, text: 'x'.repeat(1000) }, 'line')
  setTimeout(() => process.stderr.write('logged\\n'), 200)
})
process.stdin.on('end', () => process.exit(7))`

/** Runs {@link PROGRAM} with its output in a file of that name. */
function startLogging(t: TestContext, file: string) {
  const output = openSync(file, 'w')
  const child = spawn(process.execPath, [...OWN_PROGRAM_FLAGS, '--input-type=module', '--eval', PROGRAM], {
    stdio: ['pipe', output, 'pipe'],
  })
  closeSync(output)
  t.after(() => child.kill('SIGKILL'))
  let said = ''
  child.stderr?.on('data', (text) => {
    said += text
  })
  const errors = () => said.split('\n').filter((line) => line !== 'logged' && line !== '')
  return {
    pid: child.pid as number,
    errors,
    async log(lines: number, from: number) {
      const before = said.split('logged').length
      child.stdin?.write(JSON.stringify([lines, from]))
      await until(() => said.split('logged').length > before || child.exitCode !== null, 'the lines')
    },
    async end() {
      child.stdin?.end()
      const [code] = await once(child, 'exit', { signal: AbortSignal.timeout(10_000) })
      return code
    },
  }
}

const numbers = (file: string): number[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line).at)

describe('a log that cannot be written', () => {
  it('ends no process, is reported once, and goes on where it stopped', async (t) => {
    const folder = await temporaryFolder()
    t.after(folder.remove)
    const file = join(folder.path, 'log')
    const { pid, log, errors, end } = startLogging(t, file)
    const limit = (bytes: string) =>
      execFileSync('prlimit', ['--pid', `${pid}`, `--fsize=${bytes}:unlimited`])
    await log(3, 0)
    limit('0')
    for (const from of [3, 6]) await log(3, from)
    assert.deepEqual(errors(), ['the log cannot be written: EFBIG'])
    limit('unlimited')
    await log(1, 9)
    assert.deepEqual(numbers(file), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    limit('0')
    await log(1, 10)
    assert.deepEqual(errors(), Array(2).fill('the log cannot be written: EFBIG'))
    assert.equal(await end(), 7)
  })

  it('keeps a bounded part of what it was given', async (t) => {
    const { pid, log, end } = startLogging(t, '/dev/full')
    const memory = () => Number(/RssAnon:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
    await log(1, 0)
    const before = memory()
    for (let i = 0; i < 11; i++) await log(10_000, i * 10_000)
    assert.ok(memory() - before < 80_000, `${memory() - before} kB more`)
    assert.equal(await end(), 7)
  })
})
