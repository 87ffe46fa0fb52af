import { memoryKeyDirectory } from '../../lib/middleware/authenticate/index.ts'
import { keyDirectoryContract } from './key-directory.ts'

keyDirectoryContract('memory', async (seed) => ({ keys: memoryKeyDirectory(seed), close: async () => {} }))
