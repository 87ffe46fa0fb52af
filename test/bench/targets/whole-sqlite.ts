/** The whole chain: limits in memory; keys, records, money and call log in a SQLite file. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rateLimit } from '../../../lib/index.ts'
import { benchConfig, serveChain } from '../chain.ts'
import { durableParts } from '../durable-parts.ts'

const folder = mkdtempSync(join(tmpdir(), 'gateway-bench-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
// The folder goes when this process exits, which a signal alone does not count as.
process.once('SIGTERM', () => process.exit())

const config = benchConfig()
serveChain(config, await durableParts(`sqlite:${join(folder, 'bench.db')}`, config, rateLimit()))
