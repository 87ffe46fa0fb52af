import { dirname, join } from 'node:path'
import { loadEnvFile } from 'node:process'
import { printFaults } from './check-settings.ts'
import { readCommandLine, USAGE } from './command-line.ts'
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
    default:
      await import('./server.ts')
  }
} catch (error) {
  exitWithErrors(error)
}

/** Reads the `.env` beside a config, or of the current folder. A variable that is set already stays as it is. */
function loadEnvironment(file: string | undefined): void {
  try {
    loadEnvFile(join(file === undefined ? '.' : dirname(file), '.env'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}
