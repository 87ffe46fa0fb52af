import cluster from 'node:cluster'
import { readCommandLine, USAGE } from './command-line.ts'
import { printFaults } from './commands/check.ts'
import { loadEnvironment } from './config/environment.ts'
import { exitWithErrors } from './errors.ts'

try {
  const command = readCommandLine(process.argv.slice(2))
  const file = command.action === 'convert' ? command.source : command.config
  loadEnvironment(file ?? process.env.GATEWAY_CONFIG)
  switch (command.action) {
    case 'help':
      console.log(USAGE)
      break
    case 'version': {
      const { default: manifest } = await import('express-model-gateway/package.json', {
        with: { type: 'json' },
      })
      console.log(manifest.version)
      break
    }
    case 'schema': {
      const { configJsonSchema } = await import('express-model-gateway/config')
      console.log(JSON.stringify(configJsonSchema(), null, 2))
      break
    }
    case 'check':
      process.exitCode = await printFaults(process.env, command.config, command.use)
      break
    case 'convert': {
      const { printConverted, printPrices } = await import('./commands/convert.ts')
      process.exitCode =
        command.format === 'litellm'
          ? await printConverted(command.source, process.env)
          : await printPrices(command.source)
      break
    }
    case 'migrate': {
      const { migrateDatabase } = await import('./commands/database.ts')
      await migrateDatabase(process.env, command)
      break
    }
    case 'backup':
    case 'restore': {
      const { backUpDatabase, restoreFromBackup } = await import('./commands/database.ts')
      await (command.action === 'backup' ? backUpDatabase : restoreFromBackup)(process.env, command)
      break
    }
    case 'prune': {
      const { pruneDatabase } = await import('./commands/database.ts')
      await pruneDatabase(process.env, command.config)
      break
    }
    default:
      // A signal ends a start, until start.ts has its own listeners. The primary process decides over its workers.
      if (!cluster.isWorker)
        for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => process.exit(0))
      await import('./start.ts')
  }
} catch (error) {
  exitWithErrors(error)
}
