import cluster from 'node:cluster'
import { printFaults } from './check-settings.ts'
import { readCommandLine, USAGE } from './command-line.ts'
import { endAtSignals } from './early-signals.ts'
import { loadEnvironment } from './environment.ts'
import { exitWithErrors } from './exit-with-errors.ts'

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
      process.exitCode = await printFaults(process.env, command.config)
      break
    case 'convert': {
      const { printConverted } = await import('./convert/print-converted.ts')
      process.exitCode = await printConverted(command.source, process.env)
      break
    }
    case 'migrate': {
      const { migrateDatabase } = await import('./migrate-database.ts')
      await migrateDatabase(process.env, command)
      break
    }
    case 'prune': {
      const { pruneDatabase } = await import('./prune-database.ts')
      await pruneDatabase(process.env, command.config)
      break
    }
    default:
      // The primary process decides over its workers.
      if (!cluster.isWorker) endAtSignals()
      await import('./server.ts')
  }
} catch (error) {
  exitWithErrors(error)
}
